package assignment

import (
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/faults"
	saga "github.com/waybillhq/waybill/saga/contracts"
)

// only has some groups handle all there is, until nothing comes any more.
func (g *game) only(groups ...string) {
	for g.err == nil {
		steps := slices.DeleteFunc(g.steps(), func(s step) bool { return !slices.Contains(groups, s.g.name) })
		if len(steps) == 0 {
			return
		}
		g.handle(steps[0], 0, false)
	}
}

func (g *game) said(typ string) (n int) {
	for _, r := range g.records {
		if strings.HasSuffix(typeOf(r), "."+typ) {
			n++
		}
	}
	return n
}

// Billing is away after the courier was held: called overdue, orders looks for
// another, the courier is let go, and the fee that comes after all is barred.
func TestAStepThatStandsStillLetsTheCourierGo(t *testing.T) {
	g := &game{product: begin(open(t), &mischief{voids: map[string]int{}}), ctx: t.Context(), tenant: event.NewID()}
	g.ride()
	g.place()
	g.only("couriers", "orders")
	if g.said("CourierReserved") != 1 {
		t.Fatalf("nobody was held: %v\n%s", g.err, g.story())
	}
	g.then("overdue", g.overdue(g.ctx, g.tenant, g.placed[0], 1, "bill", saga.DirectionForward))
	g.only("couriers", "orders")
	if g.err != nil || g.said("CourierReleased") != 1 {
		t.Fatalf("the courier is held on: %v\n%s", g.err, g.story())
	}
	g.only("orders", "couriers", "billing", "dispatch")
	if b, err := g.book(g.ctx, g.tenant, g.placed[0]); g.err != nil || err != nil || len(b.Fees) > 0 || len(b.Holding) > 0 {
		t.Errorf("%+v, %v, %v", b, err, g.err)
	}
}

// A fee could not be voided and its event waits among the parked: asked for
// again, billing voids it, and the courier goes after it.
func TestACompensationThatIsAskedForAgainIsMadeUpFor(t *testing.T) {
	m := &mischief{voids: map[string]int{}, percent: map[string]uint64{faults.NotificationFailure: 100, faults.CompensationFailure: 100}}
	g := &game{product: begin(open(t), m), ctx: t.Context(), tenant: event.NewID()}
	g.ride()
	g.place()
	g.only("couriers", "orders")
	g.only("billing")
	g.only("dispatch") // which fails
	if g.said("CourierNotificationFailed") != 1 || g.said("PlatformFeeVoided") != 0 {
		t.Fatalf("%v\n%s", g.err, g.story())
	}
	m.percent[faults.CompensationFailure] = 0
	g.then("overdue", g.overdue(g.ctx, g.tenant, g.placed[0], 1, "bill", saga.DirectionBack))
	asked := slices.DeleteFunc(g.steps(), func(s step) bool {
		return s.g.name != "billing" || !strings.HasPrefix(s.lane, "saga.events ")
	})
	if len(asked) != 1 {
		t.Fatalf("billing has %d asks to handle", len(asked))
	}
	g.handle(asked[0], 0, false)
	if g.err != nil || g.said("PlatformFeeVoided") != 1 {
		t.Fatalf("the fee stands on: %v\n%s", g.err, g.story())
	}
	g.only("couriers")
	if g.err != nil || g.said("CourierReleased") != 1 {
		t.Errorf("the courier is held on: %v\n%s", g.err, g.story())
	}
}
