// Package v1 is what a program of the demonstration was compiled against:
// version 1 of its contract.
package v1

//go:generate go run github.com/waybillhq/waybill/internal/avrogen
