// Package contracts holds the events that package saga publishes: a step is
// overdue, a step was done by hand. Their topic is saga.events, their key the
// saga's, so that they stand under the key of what they are about.
//
// The schemas are the truth, and the Go types are generated from them, as those
// of a product's own events are.
package contracts

//go:generate go run github.com/waybillhq/waybill/internal/avrogen
