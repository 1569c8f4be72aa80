package delivery

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/assign"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/saga"
)

// book is what the modules hold of an order, each in its own tables.
type book struct {
	State        string
	Attempt      int
	Reservations []string // state by attempt
	Fees         []string // likewise
	Owed         int64    // cents
}

func (h *house) book(ctx context.Context, order uuid.UUID) (b book, err error) {
	err = pg.InTenant(ctx, h.engines.DB, h.tenant.String(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT o.state, o.attempt,
			coalesce((SELECT array_agg(r.state ORDER BY r.attempt) FROM couriers.reservations r WHERE r.tenant = o.tenant AND r.order_id = o.id), '{}'),
			coalesce((SELECT array_agg(f.state ORDER BY f.attempt) FROM billing.fees f WHERE f.tenant = o.tenant AND f.order_id = o.id), '{}'),
			coalesce((SELECT sum(f.amount) FROM billing.fees f WHERE f.tenant = o.tenant AND f.order_id = o.id AND f.state = 'BILLED'), 0)::bigint
			FROM orders.orders o WHERE o.id = $1`, order).Scan(&b.State, &b.Attempt, &b.Reservations, &b.Fees, &b.Owed)
	})
	return b, err
}

// must tells where the books are not what they must be.
func (b book) must(want book) error {
	if fmt.Sprint(b) != fmt.Sprint(want) {
		return fmt.Errorf("the books are %+v, want %+v", b, want)
	}
	return nil
}

// reaches waits until an order is in a state.
func (h *house) reaches(ctx context.Context, order uuid.UUID, state string) error {
	return h.await(ctx, "order "+state, func(ctx context.Context) (bool, error) {
		b, err := h.book(ctx, order)
		return b.State == state, err
	})
}

// round waits until a round of an order's saga has ended as it must.
func (h *house) round(ctx context.Context, order uuid.UUID, n int, want saga.State) (d saga.Detail, err error) {
	err = h.await(ctx, fmt.Sprintf("round %d of the saga %s", n, want), func(ctx context.Context) (bool, error) {
		page, err := saga.List(ctx, h.engines.DB, saga.Filter{Tenant: h.tenant.String(), Key: order.String()})
		if err != nil {
			return false, err
		}
		for _, in := range page.Instances {
			if in.Round == n && in.State == want {
				d, err = saga.Get(ctx, h.engines.DB, in.Ref)
				return true, err
			}
		}
		return false, nil
	})
	return d, err
}

// count is a number of the merchant's own rows.
func (h *house) count(ctx context.Context, sql string, args ...any) (n int, err error) {
	err = pg.InTenant(ctx, h.engines.DB, h.tenant.String(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, sql, args...).Scan(&n)
	})
	return n, err
}

// assigned is how long each order took from OrderCreated to OrderAssigned, as
// the events' own times have it.
func (h *house) assigned(ctx context.Context, orders []uuid.UUID) (took []time.Duration, err error) {
	rows, err := h.engines.DB.Query(ctx, `SELECT a.time - c.time FROM waybill.outbox_events c
		JOIN waybill.outbox_events a ON a.topic = c.topic AND a.subject = c.subject AND a.type = 'logistica.orders.OrderAssigned'
		WHERE c.type = 'logistica.orders.OrderCreated' AND c.subject = ANY($1::text[])`, orders)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Duration])
}

// completed is how many of the sagas of the orders are.
func (h *house) completed(ctx context.Context) (n int, err error) {
	f := saga.Filter{Saga: assign.Name, Tenant: h.tenant.String(), State: saga.Completed, Limit: 1000}
	for {
		page, err := saga.List(ctx, h.engines.DB, f)
		if err != nil {
			return 0, err
		}
		n += len(page.Instances)
		if f.After = page.Next; f.After == "" {
			return n, nil
		}
	}
}

// said is one line of an attempt: the events' names.
func said(d saga.Detail) string {
	var names []string
	for _, e := range d.Entries {
		if e.IsEvent() {
			names = append(names, e.Type[strings.LastIndexByte(e.Type, '.')+1:])
		}
	}
	return strings.Join(names, " > ")
}
