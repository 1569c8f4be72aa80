package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Assignment is what is known of one attempt at finding a courier. Its facts
// come from several modules in any order; one that has not come is nil.
type Assignment struct {
	Attempt       int32
	Courier       *uuid.UUID
	Vehicle       *string
	ReservedUntil *time.Time
	PickupETA     *time.Time
	DeliveryETA   *time.Time
	DistanceM     *int64 // metres, from the courier over the merchant to the customer

	FeeID       *uuid.UUID
	FeeAmount   *int64 // hundredths of the currency
	FeeCurrency *string

	ReservedAt    *time.Time
	FailedAt      *time.Time // the search ended without a courier
	Failure       *string
	BilledAt      *time.Time
	VoidedAt      *time.Time
	NotifiedAt    *time.Time
	AssignedAt    *time.Time
	ReleasedAt    *time.Time
	ReleaseReason *string
}

// Fee is what the merchant owes for the attempt; standing is false where it was
// not billed or is owed no longer.
func (a *Assignment) Fee() (id uuid.UUID, amount int64, currency string, standing bool) {
	if a == nil || a.BilledAt == nil || a.VoidedAt != nil {
		return uuid.Nil, 0, "", false
	}
	return *a.FeeID, *a.FeeAmount, *a.FeeCurrency, true
}

const assignmentColumns = `courier, vehicle, reserved_until, pickup_eta, delivery_eta, distance_m,
	fee_id, fee_amount, fee_currency, reserved_at, failed_at, failure, billed_at, voided_at,
	notified_at, assigned_at, released_at, release_reason`

func (a *Assignment) fields() []any {
	return []any{
		&a.Courier, &a.Vehicle, &a.ReservedUntil, &a.PickupETA, &a.DeliveryETA, &a.DistanceM,
		&a.FeeID, &a.FeeAmount, &a.FeeCurrency, &a.ReservedAt, &a.FailedAt, &a.Failure, &a.BilledAt, &a.VoidedAt,
		&a.NotifiedAt, &a.AssignedAt, &a.ReleasedAt, &a.ReleaseReason,
	}
}

func (a *Assignment) values() []any {
	return []any{
		a.Courier, a.Vehicle, a.ReservedUntil, a.PickupETA, a.DeliveryETA, a.DistanceM,
		a.FeeID, a.FeeAmount, a.FeeCurrency, a.ReservedAt, a.FailedAt, a.Failure, a.BilledAt, a.VoidedAt,
		a.NotifiedAt, a.AssignedAt, a.ReleasedAt, a.ReleaseReason,
	}
}

// scanAssignment reads the attempt, what leads, and the columns.
func scanAssignment(row pgx.Row, leading ...any) (*Assignment, error) {
	a := &Assignment{}
	if err := row.Scan(append(append(leading, &a.Attempt), a.fields()...)...); err != nil {
		return nil, err
	}
	inUTC(a.ReservedUntil, a.PickupETA, a.DeliveryETA, a.ReservedAt, a.FailedAt, a.BilledAt, a.VoidedAt, a.NotifiedAt, a.AssignedAt, a.ReleasedAt)
	return a, nil
}

func inUTC(times ...*time.Time) {
	for _, t := range times {
		if t != nil {
			*t = t.UTC()
		}
	}
}

// queueAssignment reads what is known of the order's present attempt.
func queueAssignment(b *pgx.Batch, tenant, id uuid.UUID, o *Order) {
	b.Queue(`SELECT attempt, `+assignmentColumns+` FROM orders.assignments
		WHERE tenant = $1 AND order_id = $2 AND attempt = (
			SELECT attempt FROM orders.orders WHERE tenant = $1 AND id = $2)`, tenant, id).
		QueryRow(func(row pgx.Row) (err error) {
			o.Assignment, err = scanAssignment(row)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
}

// addAssignments reads what is known of many orders' present attempts.
func addAssignments(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, list []Order) error {
	if len(list) == 0 {
		return nil
	}
	ids, attempts, at := make([]uuid.UUID, len(list)), make([]int32, len(list)), make(map[uuid.UUID]int, len(list))
	for i, o := range list {
		ids[i], attempts[i], at[o.ID] = o.ID, o.Attempt, i
	}
	rows, err := tx.Query(ctx, `SELECT order_id, attempt, `+assignmentColumns+` FROM orders.assignments
		JOIN unnest($2::uuid[], $3::integer[]) AS wanted (order_id, attempt) USING (order_id, attempt)
		WHERE tenant = $1`, tenant, ids, attempts)
	if err != nil {
		return fmt.Errorf("read assignments: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		a, err := scanAssignment(rows, &id)
		if err != nil {
			return fmt.Errorf("read assignments: %w", err)
		}
		list[at[id]].Assignment = a
	}
	return rows.Err()
}

// The first to tell a fact is believed: the same event may come again, and
// another of its kind cannot come for the same attempt.
const learnSQL = `INSERT INTO orders.assignments AS a (tenant, order_id, attempt, ` + assignmentColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
	ON CONFLICT (tenant, order_id, attempt) DO UPDATE SET
		courier = coalesce(a.courier, excluded.courier), vehicle = coalesce(a.vehicle, excluded.vehicle),
		reserved_until = coalesce(a.reserved_until, excluded.reserved_until),
		pickup_eta = coalesce(a.pickup_eta, excluded.pickup_eta), delivery_eta = coalesce(a.delivery_eta, excluded.delivery_eta),
		distance_m = coalesce(a.distance_m, excluded.distance_m), fee_id = coalesce(a.fee_id, excluded.fee_id),
		fee_amount = coalesce(a.fee_amount, excluded.fee_amount), fee_currency = coalesce(a.fee_currency, excluded.fee_currency),
		reserved_at = coalesce(a.reserved_at, excluded.reserved_at), failed_at = coalesce(a.failed_at, excluded.failed_at),
		failure = coalesce(a.failure, excluded.failure), billed_at = coalesce(a.billed_at, excluded.billed_at),
		voided_at = coalesce(a.voided_at, excluded.voided_at), notified_at = coalesce(a.notified_at, excluded.notified_at),
		assigned_at = coalesce(a.assigned_at, excluded.assigned_at), released_at = coalesce(a.released_at, excluded.released_at),
		release_reason = coalesce(a.release_reason, excluded.release_reason)
	RETURNING attempt, ` + assignmentColumns

// learn adds what fact knows and returns all that is known of its attempt.
func learn(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, fact Assignment) (*Assignment, error) {
	args := append([]any{tenant, order, fact.Attempt}, fact.values()...)
	known, err := scanAssignment(tx.QueryRow(ctx, learnSQL, args...))
	if err != nil {
		return nil, fmt.Errorf("note fact of order %s, attempt %d: %w", order, fact.Attempt, err)
	}
	return known, nil
}
