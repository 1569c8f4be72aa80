package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

const selectOrder = `SELECT tenant, id, tracking_token, state, version,
	pickup_street, pickup_number, pickup_cep, pickup_district, pickup_lat, pickup_lng, pickup_reference,
	dropoff_street, dropoff_number, dropoff_cep, dropoff_district, dropoff_lat, dropoff_lng, dropoff_reference,
	customer_name, customer_phone, items, total, currency, promised_at, created_at, updated_at,
	attempt, first_attempt, courier, delivery_code, code_tries, distance_m, coalesce(proof, '')
	FROM orders.orders `

func scanOrder(row pgx.Row, o *Order) error {
	p, d := &o.Pickup, &o.Dropoff
	var courier *uuid.UUID
	err := row.Scan(&o.Tenant, &o.ID, &o.TrackingToken, &o.State, &o.Version,
		&p.Street, &p.Number, &p.CEP, &p.District, &p.Lat, &p.Lng, &p.Reference,
		&d.Street, &d.Number, &d.CEP, &d.District, &d.Lat, &d.Lng, &d.Reference,
		&o.Customer.Name, &o.Customer.Phone, &o.Items, &o.Total, &o.Currency, &o.PromisedAt, &o.CreatedAt, &o.UpdatedAt,
		&o.Attempt, &o.firstAttempt, &courier, &o.Code, &o.CodeTries, &o.DistanceM, &o.Proof)
	if courier != nil {
		o.Courier = *courier
	}
	o.CreatedAt, o.UpdatedAt = o.CreatedAt.UTC(), o.UpdatedAt.UTC()
	if o.PromisedAt != nil {
		*o.PromisedAt = o.PromisedAt.UTC()
	}
	return err
}

func scanRow(row pgx.CollectableRow) (o Order, err error) {
	err = scanOrder(row, &o)
	return o, err
}

// Get reads an order of tenant; [ErrNotFound] if it has none of that id.
func (s *Store) Get(ctx context.Context, tenant, id uuid.UUID) (o Order, err error) {
	err = pg.InTenant(ctx, s.pool, tenant.String(), func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(selectOrder+`WHERE tenant = $1 AND id = $2`, tenant, id).
			QueryRow(func(row pgx.Row) error { return scanOrder(row, &o) })
		queueAssignment(&b, tenant, id, &o)
		return tx.SendBatch(ctx, &b).Close()
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Order{}, ErrNotFound
	}
	if err != nil {
		return Order{}, fmt.Errorf("read order %s: %w", id, err)
	}
	return o, nil
}

// Query says which orders to list.
type Query struct {
	State State     // any if empty
	After uuid.UUID // continue below this order, from the newest if nil
	Limit int       // 50 if zero, 200 at most
}

const (
	defaultLimit = 50
	maxLimit     = 200
)

// List reads orders of tenant, newest first. more is true if others follow the
// last one.
func (s *Store) List(ctx context.Context, tenant uuid.UUID, q Query) (list []Order, more bool, err error) {
	limit := min(q.Limit, maxLimit)
	if limit <= 0 {
		limit = defaultLimit
	}
	sql, args := listQuery(tenant, q, limit+1)
	err = pg.InTenant(ctx, s.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, scanRow); err != nil {
			return err
		}
		return addAssignments(ctx, tx, tenant, list)
	})
	if err != nil {
		return nil, false, fmt.Errorf("list orders: %w", err)
	}
	if len(list) > limit {
		return list[:limit], true, nil
	}
	return list, false, nil
}

// listQuery leaves out the conditions that are not asked for, so that each form
// has a plan of its own on the index it needs.
func listQuery(tenant uuid.UUID, q Query, limit int) (sql string, args []any) {
	sql, args = selectOrder+`WHERE tenant = $1`, []any{tenant, limit}
	if q.State != "" {
		args = append(args, string(q.State))
		sql += fmt.Sprintf(` AND state = $%d`, len(args))
	}
	if q.After != uuid.Nil {
		args = append(args, q.After)
		sql += fmt.Sprintf(` AND id < $%d`, len(args))
	}
	return sql + ` ORDER BY id DESC LIMIT $2`, args
}
