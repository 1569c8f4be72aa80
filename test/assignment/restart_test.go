package assignment

import (
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/pg"
)

// Each module in turn is killed whenever something new was said of four orders,
// whatever it is doing then: its transactions are cut off, and another process of
// it goes on. Half the couriers cannot be told, so that attempts are taken back
// as well.
func TestAnyModuleMayDieBetweenAnyTwoEvents(t *testing.T) {
	c := newCrowd(t)
	_, err := c.flags.Set(t.Context(), faults.NotificationFailure, 50, 0, "the test")
	must(t, err)
	all := 0
	for _, module := range modules {
		shop := event.NewID()
		for range 5 {
			_, err := c.courier(t.Context(), shop)
			must(t, err)
		}
		c.stops[module]()
		kill := c.mortal(module)
		placed := map[uuid.UUID]uuid.UUID{}
		for range 4 {
			id, err := c.order(t.Context(), shop)
			must(t, err)
			placed[id] = shop
		}
		kills, seen := 0, 0
		c.until(module+" comes to the end of it", func() bool {
			for n := c.said(shop); n > seen; n = c.said(shop) {
				seen = n
				kill()
				kill = c.mortal(module)
				kills++
			}
			return c.atRest(shop)
		})
		kill()
		c.run(module, c.module(module, c.db))
		t.Logf("%s was killed %d times in the course of %d events", module, kills, seen)
		all += kills
		_, err := c.audit(placed)
		must(t, err)
	}
	if all < 4*len(modules) {
		t.Errorf("they were killed %d times in all: the test shows less than it says", all)
	}
	c.gapless()
}

// said is how many events there are of a merchant's orders.
func (c *crowd) said(shop uuid.UUID) int {
	c.t.Helper()
	return c.number(shop, `SELECT count(*) FROM waybill.outbox_events WHERE tenant = $1`, shop.String())
}

// mortal runs a process of a module on connections of its own, until it is killed.
func (c *crowd) mortal(module string) (kill func()) {
	c.t.Helper()
	application := module + " " + uuid.NewString()
	db, err := pg.Open(c.t.Context(), c.db.Config().ConnString(), pg.Config{ApplicationName: application, MaxConns: 8})
	must(c.t, err)
	c.run(module, c.module(module, db))
	return func() {
		c.cut(application)
		c.stops[module]()
		db.Close()
	}
}
