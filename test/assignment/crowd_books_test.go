package assignment

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/saga"
)

const settledStates = `('ASSIGNED', 'UNASSIGNABLE', 'CANCELLED')`

// audit holds the books of orders, by whose they are, and the records of their
// sagas against each other.
func (c *crowd) audit(placed map[uuid.UUID]uuid.UUID) (map[uuid.UUID]book, error) {
	var mu sync.Mutex
	books := map[uuid.UUID]book{}
	var all errgroup.Group
	all.SetLimit(8)
	for order, shop := range placed {
		all.Go(func() error {
			b, err := c.book(c.t.Context(), shop, order)
			if err != nil {
				return err
			}
			if err := errors.Join(b.balanced(), c.agrees(shop, order, b)); err != nil {
				c.t.Errorf("order %s: %v", order, err)
			}
			mu.Lock()
			defer mu.Unlock()
			books[order] = b
			return nil
		})
	}
	return books, all.Wait()
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
	if err != nil {
		return err
	}
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
