// Package analytics counts each merchant's orders by state: a read model built
// from the events of orders, by the handlers of [Model].
//
// Promise: once every event has been handled, the counts equal the table of
// orders. The handlers rely on their caller for it: each event's effects must
// commit once, together with the caller's record of having handled it, and the
// events of an order must come in order. They do not hide a breach. An event
// that comes twice or after a gap is an error of type *[OutOfOrder], and
// nothing is counted.
//
// Limits: the counts lag behind the orders by as much as the consumer does.
package analytics

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

// Model is the read model. It is safe for concurrent use.
type Model struct{ pool *pgxpool.Pool }

// New makes the model on a migrated database.
func New(pool *pgxpool.Pool) *Model { return &Model{pool: pool} }

// Counts is how many orders of tenant are in each state; states without any
// are left out.
func (m *Model) Counts(ctx context.Context, tenant uuid.UUID) (map[string]int64, error) {
	counts := map[string]int64{}
	err := pg.InTenant(ctx, m.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT state, count FROM analytics.orders_by_state WHERE tenant = $1`, tenant)
		if err != nil {
			return err
		}
		var state string
		var count int64
		_, err = pgx.ForEachRow(rows, []any{&state, &count}, func() error {
			counts[state] = count
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read counts of orders: %w", err)
	}
	return counts, nil
}

// OutOfOrder is an event whose version does not follow the one before it.
type OutOfOrder struct {
	Order   uuid.UUID
	Version int64 // of the event
}

func (e *OutOfOrder) Error() string {
	return fmt.Sprintf("order %s: event of version %d does not follow the one counted before; it was delivered twice or after a gap", e.Order, e.Version)
}
