package assignment

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// book is what the modules hold of one order.
type book struct {
	State   string
	Attempt int32
	Courier uuid.UUID // of the order, nil if none
	Holding []string  // active reservations: attempt, courier and state
	Fees    []int32   // attempts whose fee stands
}

func (p *product) book(ctx context.Context, tenant, order uuid.UUID) (b book, err error) {
	err = pg.InTenant(ctx, p.pool, tenant.String(), func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT state, attempt, coalesce(courier, $2::uuid) FROM orders.orders WHERE id = $1`, order, uuid.Nil).Scan(&b.State, &b.Attempt, &b.Courier)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `SELECT coalesce(array_agg(attempt || ' ' || courier || ' ' || state), '{}') FROM couriers.reservations
			WHERE order_id = $1 AND state IN ('RESERVED', 'CONFIRMED')`, order).Scan(&b.Holding)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT coalesce(array_agg(attempt), '{}') FROM billing.fees WHERE order_id = $1 AND state = 'BILLED'`, order).Scan(&b.Fees)
	})
	return b, err
}

// balanced is what must be true of an order once nothing is left to be handled:
// one courier and one fee, or neither.
func (b book) balanced() error {
	switch b.State {
	case "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT":
		want := fmt.Sprintf("%d %s CONFIRMED", b.Attempt, b.Courier)
		if len(b.Holding) != 1 || b.Holding[0] != want {
			return fmt.Errorf("order is %s, held are %q, want %q", b.State, b.Holding, want)
		}
		if len(b.Fees) != 1 || b.Fees[0] != b.Attempt {
			return fmt.Errorf("order is %s in attempt %d, fees stand of attempts %v", b.State, b.Attempt, b.Fees)
		}
		return nil
	case "UNASSIGNABLE", "CANCELLED":
		if len(b.Holding) > 0 || len(b.Fees) > 0 || b.Courier != uuid.Nil && b.State == "UNASSIGNABLE" {
			return fmt.Errorf("order is %s, held are %q, fees stand of attempts %v, courier %s", b.State, b.Holding, b.Fees, b.Courier)
		}
		return nil
	}
	return fmt.Errorf("order is %s when all is over: %+v", b.State, b)
}

// numbered tells where what a module says of a key does not count 1, 2, 3.
func (l *log) numbered() error {
	for lane, records := range l.lanes {
		if strings.HasPrefix(lane, "saga.events ") {
			continue // asks have no numbers
		}
		for i, r := range records {
			if got := header(r, event.HeaderSequence); got != strconv.Itoa(i+1) {
				return fmt.Errorf("%s: event %d has number %q", lane, i+1, got)
			}
		}
	}
	return nil
}
