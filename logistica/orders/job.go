package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Job is an order as the courier who carries it sees it: with addresses, and
// without prices.
type Job struct {
	Order       uuid.UUID
	Tenant      uuid.UUID
	State       State
	Allowed     []State // where the courier may take it
	Version     int64
	Attempt     int32
	Pickup      Place
	Dropoff     Place
	Customer    Customer
	Items       []TrackedItem
	PromisedAt  *time.Time
	AssignedAt  *time.Time
	PickupETA   *time.Time
	DeliveryETA *time.Time
	DistanceM   *int64 // metres
	CodeLocked  bool   // no delivery code is taken, until the merchant resets the tries
}

// maxJobs bounds an answer; a courier carries a few orders at a time.
const maxJobs = 100

const selectJobs = `SELECT o.id, o.tenant, o.state, o.version, o.attempt,
	o.pickup_street, o.pickup_number, o.pickup_cep, o.pickup_district, o.pickup_lat, o.pickup_lng, o.pickup_reference,
	o.dropoff_street, o.dropoff_number, o.dropoff_cep, o.dropoff_district, o.dropoff_lat, o.dropoff_lng, o.dropoff_reference,
	o.customer_name, o.customer_phone, o.items, o.promised_at, a.assigned_at, a.pickup_eta, a.delivery_eta, o.distance_m, o.code_tries
	FROM orders.orders o LEFT JOIN orders.assignments a
		ON a.tenant = o.tenant AND a.order_id = o.id AND a.attempt = o.attempt
	WHERE o.courier = $1 AND o.state NOT IN ('DELIVERED', 'CANCELLED', 'RETURNED')
	ORDER BY o.id LIMIT $2`

// Jobs is the orders that courier was given and that have not ended, of all
// tenants, oldest first; the first 100 of more.
//
// It runs under the courier alone: row-level security shows that transaction
// the orders whose courier it is and nothing else.
func (s *Store) Jobs(ctx context.Context, courier uuid.UUID) (jobs []Job, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('waybill.courier', $1, true)`, courier.String())
		b.Queue(selectJobs, courier, maxJobs).Query(func(rows pgx.Rows) (err error) {
			jobs, err = pgx.CollectRows(rows, scanJob)
			return err
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("read jobs of courier %s: %w", courier, err)
	}
	return jobs, nil
}

func scanJob(row pgx.CollectableRow) (j Job, err error) {
	p, d := &j.Pickup, &j.Dropoff
	var items []Item
	var tries int32
	err = row.Scan(&j.Order, &j.Tenant, &j.State, &j.Version, &j.Attempt,
		&p.Street, &p.Number, &p.CEP, &p.District, &p.Lat, &p.Lng, &p.Reference,
		&d.Street, &d.Number, &d.CEP, &d.District, &d.Lat, &d.Lng, &d.Reference,
		&j.Customer.Name, &j.Customer.Phone, &items, &j.PromisedAt, &j.AssignedAt, &j.PickupETA, &j.DeliveryETA, &j.DistanceM, &tries)
	j.CodeLocked = tries >= MaxCodeTries
	inUTC(j.PromisedAt, j.AssignedAt, j.PickupETA, j.DeliveryETA)
	for _, i := range items {
		j.Items = append(j.Items, TrackedItem{Name: i.Name, Quantity: i.Quantity})
	}
	j.Allowed = Allowed(j.State, Courier)
	return j, err
}

// MoveAsCourier moves an order that courier carries, as [Store.Transition] does
// with [Courier] as the actor. DELIVERED takes the customer's code, which no
// other state looks at; what is wrong with it is *[CodeRefused].
//
// An order that is not courier's is [ErrNotFound], as is one that was given to
// another a moment ago. The order that is returned has no [Code]: the courier
// asks the customer for it.
func (s *Store) MoveAsCourier(ctx context.Context, courier, order uuid.UUID, m Move, code string) (o Order, err error) {
	m.Actor = Courier
	if err := m.validate(); err != nil {
		return Order{}, err
	}
	var refused *CodeRefused
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		o, refused, err = s.moveAsCourier(ctx, tx, courier, order, m, code)
		return err // a refused code commits: its try is counted
	})
	switch {
	case err != nil:
		return Order{}, err
	case refused != nil:
		return Order{}, refused
	}
	return o, nil
}

func (s *Store) moveAsCourier(ctx context.Context, tx pgx.Tx, courier, order uuid.UUID, m Move, code string) (Order, *CodeRefused, error) {
	tenant, err := tenantOfJob(ctx, tx, courier, order)
	if err != nil {
		return Order{}, nil, err
	}
	o, err := lock(ctx, tx, tenant, order)
	if err != nil {
		return Order{}, nil, err
	}
	if o.Courier != courier { // released between the look and the lock
		return Order{}, nil, ErrNotFound
	}
	if err := check(o, m); err != nil {
		return Order{}, nil, err
	}
	if m.To == Delivered {
		if refused, err := s.tryCode(ctx, tx, &o, code); refused != nil || err != nil {
			return Order{}, refused, err
		}
		m.proof = ProofCode
	}
	err = s.apply(ctx, tx, &o, m)
	o.Code = ""
	return o, nil, err
}

// tenantOfJob looks as the courier whose order it is, and then gives that up:
// what follows acts for the tenant.
func tenantOfJob(ctx context.Context, tx pgx.Tx, courier, order uuid.UUID) (tenant uuid.UUID, err error) {
	var b pgx.Batch
	b.Queue(`SELECT set_config('waybill.courier', $1, true)`, courier.String())
	b.Queue(`SELECT tenant FROM orders.orders WHERE courier = $1 AND id = $2`, courier, order).
		QueryRow(func(row pgx.Row) error { return row.Scan(&tenant) })
	b.Queue(`SELECT set_config('waybill.courier', '', true)`)
	err = tx.SendBatch(ctx, &b).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, ErrNotFound
	}
	if err != nil {
		return uuid.Nil, fmt.Errorf("find order %s of courier %s: %w", order, courier, err)
	}
	return tenant, nil
}
