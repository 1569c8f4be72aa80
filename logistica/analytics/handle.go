package analytics

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// Subscribe has the group count what happens to orders. It takes every type
// that counts an order's versions: one left out would look like a gap.
func (m *Model) Subscribe(g *consumer.Group) {
	consumer.On(g, m.Created)
	consumer.On(g, m.StatusChanged)
	consumer.On(g, m.Assigned)
	consumer.On(g, m.Delivered)
}

// Created counts a new order.
func (m *Model) Created(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderCreated]) error {
	c, err := change(e.Envelope, e.Data.OrderID, e.Data.Version)
	if err != nil {
		return err
	}
	if c.version != 1 {
		return &OutOfOrder{c.order, c.version}
	}
	created := string(contracts.OrderStateCreated)
	c.expectRow(`INSERT INTO analytics.order_state (tenant, order_id, state, version) VALUES ($1, $2, $3, 1)
		ON CONFLICT DO NOTHING`, c.tenant, c.order, created)
	c.count(created, 1)
	return c.send(ctx, tx)
}

// StatusChanged moves an order from one count to another.
func (m *Model) StatusChanged(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderStatusChanged]) error {
	c, err := change(e.Envelope, e.Data.OrderID, e.Data.Version)
	if err != nil {
		return err
	}
	from, to := string(e.Data.From), string(e.Data.To)
	c.expectRow(`UPDATE analytics.order_state SET state = $5, version = $3
		WHERE tenant = $1 AND order_id = $2 AND version = $3 - 1 AND state = $4`, c.tenant, c.order, c.version, from, to)
	// Always the lesser name first: two handlers that move orders to and fro
	// between the same states would otherwise wait for each other.
	if from < to {
		c.count(from, -1)
		c.count(to, 1)
	} else {
		c.count(to, 1)
		c.count(from, -1)
	}
	return c.send(ctx, tx)
}

// Assigned only follows the version: the state came with StatusChanged.
func (m *Model) Assigned(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderAssigned]) error {
	return follow(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Version)
}

// Delivered only follows the version: the state came with StatusChanged.
func (m *Model) Delivered(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderDelivered]) error {
	return follow(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Version)
}

func follow(ctx context.Context, tx pgx.Tx, e event.Envelope, order uuid.UUID, version int64) error {
	c, err := change(e, order, version)
	if err != nil {
		return err
	}
	c.expectRow(`UPDATE analytics.order_state SET version = $3
		WHERE tenant = $1 AND order_id = $2 AND version = $3 - 1`, c.tenant, c.order, c.version)
	return c.send(ctx, tx)
}

// writes collects what one event changes, to be sent in one round trip.
type writes struct {
	tenant, order uuid.UUID
	version       int64
	batch         pgx.Batch
	missed        bool // the order's row was not at the version before
}

func change(e event.Envelope, order uuid.UUID, version int64) (*writes, error) {
	tenant, err := uuid.Parse(e.Tenant)
	if err != nil {
		return nil, fmt.Errorf("count order %s: tenant %.64q: %w", order, e.Tenant, err)
	}
	w := &writes{tenant: tenant, order: order, version: version}
	w.batch.Queue(`SELECT set_config('waybill.tenant', $1, true)`, tenant.String())
	return w, nil
}

func (w *writes) expectRow(sql string, args ...any) {
	w.batch.Queue(sql, args...).Exec(func(ct pgconn.CommandTag) error {
		w.missed = ct.RowsAffected() != 1
		return nil
	})
}

// lanes spreads a merchant's counts; see the migration.
const lanes = 16

// count adds n to a state's count: a plain increment, so that a second effect
// of the same event would show. Counts come last in the batch, since their rows
// are the contended ones.
func (w *writes) count(state string, n int) {
	lane := int16(w.order[15] % lanes) // the last byte of a UUIDv7 is random
	if n > 0 {
		w.batch.Queue(`INSERT INTO analytics.order_count AS c (tenant, state, lane, count) VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant, state, lane) DO UPDATE SET count = c.count + excluded.count`, w.tenant, state, lane, n)
		return
	}
	w.batch.Queue(`UPDATE analytics.order_count SET count = count + $4 WHERE tenant = $1 AND state = $2 AND lane = $3`,
		w.tenant, state, lane, n)
}

func (w *writes) send(ctx context.Context, tx pgx.Tx) error {
	err := tx.SendBatch(ctx, &w.batch).Close()
	var failed *pgconn.PgError
	switch {
	case w.missed && (err == nil || errors.As(err, &failed) && failed.ConstraintName == "order_count_count_check"):
		return &OutOfOrder{w.order, w.version}
	case err != nil:
		return fmt.Errorf("count order %s: %w", w.order, err)
	}
	return nil
}
