package assignment

import (
	"testing"
	"time"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
	saga "github.com/waybillhq/waybill/saga/contracts"
)

// A courier is asked to be let go, or held past the deadline as far as couriers
// knows, while the goods are being picked up: whoever is first with orders
// decides, and who has the goods keeps the order and is given no other.
func TestWhoHasTheGoodsIsNotLetGo(t *testing.T) {
	pool := open(t)
	ways := map[string]struct {
		confirmed bool // couriers knows that the order was assigned
		ask       func(*game) error
	}{
		"declined": {true, func(g *game) error { return g.couriers.Decline(g.ctx, g.riders[0], g.placed[0], "") }},
		"reassigned": {true, func(g *game) error {
			return g.couriers.Reassign(event.WithTenant(g.ctx, g.tenant.String()), g.tenant, g.placed[0])
		}},
		"expired": {false, func(g *game) error {
			g.time = g.time.Add(3 * time.Minute)
			_, err := g.couriers.Expire(g.ctx)
			return err
		}},
		"overdue": {false, func(g *game) error {
			return g.overdue(g.ctx, g.tenant, g.placed[0], 1, "assign", saga.DirectionForward)
		}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			g := &game{product: begin(pool, &mischief{voids: map[string]int{}}), ctx: t.Context(), tenant: event.NewID()}
			g.ride()
			g.place()
			g.only("couriers")
			if g.only("orders", "billing", "dispatch"); way.confirmed {
				g.only("couriers")
			}
			g.walk(g.placed[0], orders.PickupOngoing, orders.ArrivedAtMerchant, orders.PickedUp)
			g.then(name, way.ask(g))
			g.place() // for which a courier who was let go would be taken
			g.only("couriers", "orders", "billing", "dispatch")
			if g.err != nil {
				t.Fatal(g.err)
			}
			b, err := g.book(g.ctx, g.tenant, g.placed[0])
			if err == nil {
				err = b.balanced()
			}
			if err == nil {
				err = g.idle(g.ctx, g.tenant, g.riders)
			}
			if err != nil || b.State != string(orders.PickedUp) {
				t.Errorf("%s: %v\n%s", b.State, err, g.story())
			}
		})
	}
}
