package assignment

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/orders"
)

// sagas is how many at once: WAYBILL_TEST_SAGAS, a thousand unless it is set, few
// with -short.
func sagas(t *testing.T) int {
	v := os.Getenv("WAYBILL_TEST_SAGAS")
	switch {
	case v == "" && testing.Short():
		return 100
	case v == "":
		return 1000
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 50 {
		t.Fatalf("WAYBILL_TEST_SAGAS=%q: want a number from 50 on", v)
	}
	return n
}

// Many orders at once, of four merchants who share their couriers, while billing
// and dispatch are slow, fees and notices fail and voids fail and fail again,
// merchants cancel, billing stops in the middle and comes back, and all
// connections are cut: each order's books balance, nobody is held twice, and the
// record of each saga agrees with them, attempt by attempt.
func TestManySagasUnderFaultsBalance(t *testing.T) {
	c, n := newCrowd(t), sagas(t)
	for name, percent := range map[string]int64{faults.BillingFailure: 15, faults.NotificationFailure: 10, faults.CompensationFailure: 5} {
		_, err := c.flags.Set(t.Context(), name, percent, 0, "the test")
		must(t, err)
	}
	_, err := c.flags.Set(t.Context(), faults.SlowConsumer, 2, 0, "the test") // ms
	must(t, err)
	must(t, c.flags.Refresh(t.Context()))
	shops := []uuid.UUID{event.NewID(), event.NewID(), event.NewID(), event.NewID()}
	began := time.Now()
	c.hire(n, shops)
	placed := c.placeAll(n, shops)
	t.Logf("%d orders placed after %s", n, time.Since(began).Round(time.Millisecond))

	c.until("a third has settled", func() bool { return c.unsettled(shops) < n*2/3 })
	c.stops["billing"]()
	c.until("what was before billing is done", func() bool { return c.lag("orders", "couriers", "dispatch") == 0 })
	c.run("billing", c.module("billing", c.db))
	c.until("half has settled", func() bool { return c.unsettled(shops) < n/2 })
	c.cut(productName)
	c.until("all have but those whose void fails", func() bool { return c.unsettled(shops) <= c.parked() })
	stuck := c.parked()
	_, err = faults.New(c.pool, faults.Config{}).Clear(t.Context(), faults.CompensationFailure)
	must(t, err)
	c.until("nothing is left to be done", func() bool { return c.atRest(shops...) })
	t.Logf("at rest after %s; %d events had waited for the fault to be cleared", time.Since(began).Round(time.Millisecond), stuck)

	books, err := c.audit(placed)
	must(t, err)
	ended, orderOf := map[string]int{}, map[uuid.UUID]uuid.UUID{} // by courier
	for order, b := range books {
		if b.State == "ASSIGNED" {
			if other, twice := orderOf[b.Courier]; twice {
				t.Errorf("courier %s has orders %s and %s", b.Courier, order, other)
			}
			orderOf[b.Courier] = order
		}
		ended[b.State]++
		ended[fmt.Sprint("attempt ", b.Attempt)]++
	}
	t.Logf("ended %v", ended)
	for _, state := range []string{"ASSIGNED", "CANCELLED", "attempt 2"} {
		if ended[state] == 0 {
			t.Errorf("none is %s: the test shows less than it says", state)
		}
	}
	c.gapless()
}

// hire makes fewer couriers than there are orders: some wait for one.
func (c *crowd) hire(n int, shops []uuid.UUID) {
	c.t.Helper()
	var hired errgroup.Group
	hired.SetLimit(8)
	for range n - n/20 {
		hired.Go(func() error {
			_, err := c.courier(c.t.Context(), shops...)
			return err
		})
	}
	must(c.t, hired.Wait())
}

// placeAll places orders as fast as they are taken, and then cancels some of
// them, wherever they are by now.
func (c *crowd) placeAll(n int, shops []uuid.UUID) map[uuid.UUID]uuid.UUID {
	c.t.Helper()
	ids := make([]uuid.UUID, n)
	var all errgroup.Group
	all.SetLimit(8)
	for i := range ids {
		all.Go(func() (err error) {
			ids[i], err = c.order(c.t.Context(), shops[i%len(shops)])
			return err
		})
	}
	must(c.t, all.Wait())
	placed := map[uuid.UUID]uuid.UUID{}
	for i, id := range ids {
		placed[id] = shops[i%len(shops)]
		if i%16 == 5 {
			_, err := c.orders.Transition(event.WithTenant(c.t.Context(), placed[id].String()), placed[id], id, orders.Move{To: orders.Cancelled, Actor: orders.Merchant})
			must(c.t, err)
		}
	}
	return placed
}
