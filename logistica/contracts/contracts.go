// Package contracts holds the events of the delivery product: an Avro schema
// for each, and the Go types generated from them.
//
// The schemas are the truth. To change an event, change its *.avsc and run go
// generate; a test fails while the two differ. A schema says in attributes of
// its record which topic carries it and which field is its key. A field may be
// added with a default; other changes are refused by the registry.
//
// An enum value outside its symbols, the zero value included, does not encode:
// the transaction that writes it fails.
package contracts

//go:generate go run github.com/waybillhq/waybill/internal/avrogen
