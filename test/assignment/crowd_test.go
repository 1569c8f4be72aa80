package assignment

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/saga"
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

const settledStates = `('ASSIGNED', 'UNASSIGNABLE', 'CANCELLED')`

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

	ended, orderOf := map[string]int{}, map[uuid.UUID]uuid.UUID{} // by courier
	for order, shop := range placed {
		b := c.balanced(shop, order)
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

// balanced holds an order's books and the record of its sagas against each other.
func (c *crowd) balanced(shop, order uuid.UUID) book {
	c.t.Helper()
	b, err := c.book(c.t.Context(), shop, order)
	must(c.t, err)
	if err := b.balanced(); err != nil {
		c.t.Errorf("order %s: %v", order, err)
	}
	if err := c.agrees(shop, order, b); err != nil {
		c.t.Errorf("order %s: %v", order, err)
	}
	return b
}

// atRest says whether nothing is left to be done for merchants.
func (c *crowd) atRest(shops ...uuid.UUID) bool {
	return c.parked() == 0 && c.unsettled(shops) == 0 && c.open(shops) == 0 && c.published() && c.lag(modules...) == 0
}

func (c *crowd) unsettled(shops []uuid.UUID) (n int) {
	for _, shop := range shops {
		n += c.number(shop, `SELECT count(*) FROM orders.orders WHERE state NOT IN `+settledStates)
	}
	return n
}

func (c *crowd) parked() int {
	return c.number(uuid.Max, `SELECT count(*) FROM waybill.parked`)
}

// open is how many sagas have not ended.
func (c *crowd) open(shops []uuid.UUID) (n int) {
	for _, shop := range shops {
		page, err := saga.List(c.t.Context(), c.pool, saga.Filter{Tenant: shop.String(), Open: true, Limit: 1000})
		must(c.t, err)
		n += len(page.Instances)
	}
	return n
}

// agrees holds the record of each attempt against how the order ended.
func (c *crowd) agrees(shop, order uuid.UUID, b book) error {
	page, err := saga.List(c.t.Context(), c.pool, saga.Filter{Tenant: shop.String(), Key: order.String()})
	must(c.t, err)
	if len(page.Instances) != int(b.Attempt) {
		return fmt.Errorf("%d attempts, %d rounds are on record", b.Attempt, len(page.Instances))
	}
	for _, in := range page.Instances {
		want := saga.Compensated
		if in.Round == int(b.Attempt) && b.State == "ASSIGNED" {
			want = saga.Completed
		}
		if in.State != want {
			return fmt.Errorf("%s in attempt %d, round %d is on record as %s, want %s", b.State, b.Attempt, in.Round, in.State, want)
		}
	}
	return nil
}

// published says whether the topics hold at least what the outbox does.
func (c *crowd) published() bool {
	var rows int64
	must(c.t, c.pool.QueryRow(c.t.Context(), `SELECT count(*) FROM waybill.outbox_events`).Scan(&rows))
	var names []string
	for _, topic := range topics() {
		names = append(names, topic.Name)
	}
	ends, err := c.admin.ListEndOffsets(c.t.Context(), names...)
	must(c.t, err)
	var sum int64
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum >= rows
}

// lag is how many events groups have not got past.
func (c *crowd) lag(modules ...string) (sum int64) {
	for _, m := range modules {
		all, err := c.admin.Lag(c.t.Context(), c.groups[m])
		group := all[c.groups[m]]
		if err != nil || group.Error() != nil || len(group.Lag) == 0 {
			return -1 // not known just now
		}
		sum += group.Lag.Total()
	}
	return sum
}

// gapless tells where what a module says of a key does not count 1, 2, 3.
func (c *crowd) gapless() {
	c.t.Helper()
	rows, err := c.pool.Query(c.t.Context(), `SELECT topic || ' ' || subject || ': ' || array_agg(sequence ORDER BY id)::text FROM waybill.outbox_events
		WHERE sequence > 0 GROUP BY topic, subject HAVING min(sequence) <> 1 OR max(sequence) <> count(*) OR count(DISTINCT sequence) <> count(*)`)
	must(c.t, err)
	gaps, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(c.t, err)
	for _, g := range gaps {
		c.t.Error("numbers with gaps:", g)
	}
}

func (c *crowd) until(what string, cond func() bool) {
	c.t.Helper()
	for late := time.Now().Add(8 * time.Minute); !cond(); time.Sleep(50 * time.Millisecond) { // a loaded machine is slow
		if time.Now().After(late) {
			c.t.Fatalf("never: %s\n%s", what, c.standing())
		}
	}
}

// standing is where all is, for a failed test.
func (c *crowd) standing() string {
	var said, parked string
	must(c.t, c.pool.QueryRow(c.t.Context(), `SELECT coalesce(string_agg(type || ' ' || n, ', '), '') FROM (SELECT type, count(*) n FROM waybill.outbox_events GROUP BY type ORDER BY type) t`).Scan(&said))
	must(c.t, c.pool.QueryRow(c.t.Context(), `SELECT coalesce(string_agg(t.line, E'\n'), '') FROM (SELECT group_name || ' ' || type || ' ' || state || ' ' || attempts || ' ' || error AS line FROM waybill.parked LIMIT 20) t`).Scan(&parked))
	lags := map[string]int64{}
	for m := range c.groups {
		lags[m] = c.lag(m)
	}
	return fmt.Sprintf("said %s\nlag %v, all published %v\nparked:\n%s", said, lags, c.published(), parked)
}
