// Package analytics is what can be counted of deliveries: orders by state, by
// minute and by hour, how long deliveries took and which came late, what the
// platform billed, what couriers did with their time. Read models of events.
//
// Promise: each event counts once, however often it is delivered, in whatever
// batches, and whatever the order in which the topics are read. A [Projector]
// keeps the log of events and all tables in one transaction, and what the log
// had is not counted again: a group that is reset reads everything and changes
// nothing, and one that is reset after [Clear] makes the same tables anew.
//
// Limits: figures lag behind the orders by as much as the consumer does. Times
// are the events' own. What a merchant reads is theirs alone; couriers ride for
// several, so how they spend their time is the platform's to see.
package analytics

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

// Model reads the tables. It is safe for concurrent use.
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
