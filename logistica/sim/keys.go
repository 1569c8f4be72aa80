package sim

import (
	"context"
	"fmt"
)

// Keys takes part with keys that exist already.
type Keys struct {
	Merchants []string
	Couriers  []string
}

// Merchant implements [Enroll].
func (k Keys) Merchant(_ context.Context, index int, _ string) (string, error) {
	if index >= len(k.Merchants) {
		return "", fmt.Errorf("there are %d keys of merchants: give more, or ask for fewer merchants", len(k.Merchants))
	}
	return k.Merchants[index], nil
}

// Courier implements [Enroll].
func (k Keys) Courier(_ context.Context, c Courier) (string, error) {
	if c.Index >= len(k.Couriers) {
		return "", fmt.Errorf("there are %d keys of couriers: give more, or ask for fewer couriers", len(k.Couriers))
	}
	return k.Couriers[c.Index], nil
}
