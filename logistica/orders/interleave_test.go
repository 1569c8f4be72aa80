package orders_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
)

// TestAnyInterleavingOnARealDatabase: the pure rule holds for every arrival; here
// it is tried with the rows, the versions and the merchant in between.
func TestAnyInterleavingOnARealDatabase(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{Attempts: 2}), event.NewID()
	rapid.Check(t, func(rt *rapid.T) {
		o := b.create(t, tenant)
		one, two := newSaga(o.ID, 1), newSaga(o.ID, 2)
		told := []event.Data{one.reserved, one.billed, one.released}
		if rapid.Bool().Draw(rt, "the first was notified") {
			told = append(told, one.notified)
		}
		want, attempt := orders.Assigned, int32(2)
		switch rapid.IntRange(0, 3).Draw(rt, "the second") {
		case 0:
			told, want = append(told, two.reserved, two.billed, two.notified), orders.Assigned
		case 1:
			told, want = append(told, two.waits, two.failed), orders.Unassignable
		case 2:
			told, want = append(told, two.reserved, two.released, two.voided), orders.Unassignable
		case 3:
			told, want = append(told, two.waits, two.reserved), orders.Assigning
		}
		told = append(told, told[rapid.IntRange(0, len(told)-1).Draw(rt, "told twice")])
		cancelAt := rapid.IntRange(-10, len(told)).Draw(rt, "cancelled before")
		for i, data := range rapid.Permutation(told).Draw(rt, "arrivals") {
			if i == cancelAt {
				o, want = b.walk(t, tenant, o.ID, orders.Cancelled), orders.Cancelled
				attempt = o.Attempt
			}
			b.give(t, tenant, data)
		}
		got := b.get(t, tenant, o.ID)
		if got.State != want || got.Attempt != attempt {
			rt.Fatalf("ends %s in attempt %d, want %s in %d", got.State, got.Attempt, want, attempt)
		}
		b.requireGapless(t, got)
	})
}
