package assignment

import (
	"slices"
	"testing"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/faults"
)

// A compensation that fails leaves nothing half undone, and the one after it
// waits: the fee stands and the courier is held until it succeeds.
func TestACompensationThatFailsTwiceSucceedsInTheEnd(t *testing.T) {
	m := &mischief{voids: map[string]int{}, percent: map[string]uint64{faults.NotificationFailure: 100, faults.CompensationFailure: 100}}
	g := &game{product: begin(open(t), m), ctx: t.Context(), tenant: event.NewID()}
	g.ride()
	g.place()
	g.only("couriers", "orders")
	g.only("billing")
	g.only("dispatch") // which fails
	if g.said("CourierNotificationFailed") != 1 {
		t.Fatalf("%v\n%s", g.err, g.story())
	}
	failed := 0
	for g.err == nil && g.said("PlatformFeeVoided") == 0 {
		b, err := g.book(g.ctx, g.tenant, g.placed[0])
		if err != nil || len(b.Fees) != 1 || len(b.Holding) != 1 {
			t.Fatalf("before it succeeds: %+v, %v", b, err)
		}
		steps := slices.DeleteFunc(g.steps(), func(s step) bool { return s.g.name != "billing" })
		if len(steps) != 1 {
			t.Fatalf("billing has %d events to handle", len(steps))
		}
		g.handle(steps[0], 0, false)
		if m.failed {
			failed++
		}
	}
	g.only("couriers", "orders", "billing", "dispatch")
	b, err := g.book(g.ctx, g.tenant, g.placed[0])
	if g.err != nil || err != nil || failed != 2 || len(b.Fees) != 0 || len(b.Holding) != 0 || b.Attempt != 2 {
		t.Errorf("failed %d times: %+v, %v, %v\n%s", failed, b, err, g.err, g.story())
	}
	if n := g.said("PlatformFeeVoided") + g.said("CourierReleased"); n != 2 {
		t.Errorf("undone %d times", n)
	}
}
