// Package v2 is what a program of the demonstration was compiled against:
// version 2 of its contract.
package v2

//go:generate go run github.com/waybillhq/waybill/internal/avrogen
