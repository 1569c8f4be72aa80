package api

import (
	"strings"

	"github.com/waybillhq/waybill/logistica/orders"
)

// describeMoves writes what a merchant may make of an order, from the table that
// guards it.
func describeMoves() string {
	var parts []string
	for _, from := range orders.States() {
		if to := orders.Allowed(from, orders.Merchant); len(to) > 0 {
			parts = append(parts, string(from)+" to "+strings.Join(names(to), " or "))
		}
	}
	return "A merchant moves " + strings.Join(parts, ", ") +
		". The others are the courier's or come by themselves. DELIVERED by a merchant confirms the delivery without its code. A forbidden transition answers 409 with from and allowed."
}
