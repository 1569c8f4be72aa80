package assignment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/pg"
)

// book is what the modules hold of one order.
type book struct {
	State   string
	Attempt int32
	Courier uuid.UUID // of the order, nil if none
	Holding []string  // active reservations: attempt, courier and state
	Carried []string  // those that came to their end: attempt and courier
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
		err = tx.QueryRow(ctx, `SELECT coalesce(array_agg(attempt || ' ' || courier), '{}') FROM couriers.reservations
			WHERE order_id = $1 AND state = 'DONE'`, order).Scan(&b.Carried)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT coalesce(array_agg(attempt), '{}') FROM billing.fees WHERE order_id = $1 AND state = 'BILLED'`, order).Scan(&b.Fees)
	})
	return b, err
}

// balanced is what must be true of an order once nothing is left to be handled:
// one courier and one fee, or neither. Who carried it to its end is free again,
// and is paid for all the same.
func (b book) balanced() error {
	var holding, carried []string
	var fees []int32
	switch b.State {
	case "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "FAILED", "RETURNING":
		holding, fees = []string{fmt.Sprintf("%d %s CONFIRMED", b.Attempt, b.Courier)}, []int32{b.Attempt}
	case "DELIVERED", "RETURNED":
		carried, fees = []string{fmt.Sprintf("%d %s", b.Attempt, b.Courier)}, []int32{b.Attempt}
	case "UNASSIGNABLE", "CANCELLED":
		if b.State == "UNASSIGNABLE" && b.Courier != uuid.Nil {
			return fmt.Errorf("order is %s and has courier %s", b.State, b.Courier)
		}
	default:
		return fmt.Errorf("order is %s when all is over: %+v", b.State, b)
	}
	if !slices.Equal(b.Holding, holding) || !slices.Equal(b.Carried, carried) || !slices.Equal(b.Fees, fees) {
		return fmt.Errorf("order is %s in attempt %d: held are %q, want %q; carried was by %q, want %q; fees stand of attempts %v, want %v",
			b.State, b.Attempt, b.Holding, holding, b.Carried, carried, b.Fees, fees)
	}
	return nil
}

// idle tells of a courier who is bound to an order that is not theirs, or free
// while one is.
func (p *product) idle(ctx context.Context, tenant uuid.UUID, riders []uuid.UUID) error {
	held := map[uuid.UUID]couriers.State{}
	err := pg.InTenant(ctx, p.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT courier, state = 'CONFIRMED' FROM couriers.reservations WHERE state IN ('RESERVED', 'CONFIRMED')`)
		if err != nil {
			return err
		}
		var courier uuid.UUID
		var confirmed bool
		_, err = pgx.ForEachRow(rows, []any{&courier, &confirmed}, func() error {
			held[courier] = couriers.Reserved
			if confirmed {
				held[courier] = couriers.Busy
			}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range riders {
		c, err := p.couriers.Get(ctx, id)
		if err != nil {
			return err
		}
		bound := c.State == couriers.Reserved || c.State == couriers.Busy
		if want, has := held[id]; has != bound || has && c.State != want {
			return fmt.Errorf("courier %s is %s, and is held as %q", id, c.State, want)
		}
	}
	return nil
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
