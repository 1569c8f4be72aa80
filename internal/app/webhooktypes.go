package app

import (
	"slices"

	"github.com/waybillhq/waybill/logistica/contracts"
	sagacontracts "github.com/waybillhq/waybill/saga/contracts"
)

// WebhookTypes are the event types that endpoints can hear of, sorted, as this
// program's contracts have them: another version may send others.
func WebhookTypes() (types []string) {
	for _, of := range hooked(slices.Concat(contracts.All(), sagacontracts.All())) {
		types = append(types, of...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}
