package orders

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// Create makes an order of tenant and publishes OrderCreated.
//
// A request with an idempotency key is carried out once: repeated is true when
// the same request came before, and the order is then as it was created. The
// same key with another request is [ErrKeyReused]. A request that is not
// acceptable is *[Invalid].
func (s *Store) Create(ctx context.Context, tenant uuid.UUID, n NewOrder, key string) (o Order, repeated bool, err error) {
	now, n := s.clock(), n.normalised()
	if len(key) > MaxKey {
		return Order{}, false, &Invalid{[]FieldError{{"idempotency_key", fmt.Sprintf("must have at most %d bytes", MaxKey)}}}
	}
	total, err := n.validate(now)
	if err != nil {
		// A promise that was in the future the first time may have passed by now.
		return s.repeatedInvalid(ctx, tenant, n, key, err)
	}
	hash, err := hashRequest(n)
	if err != nil {
		return Order{}, false, err
	}
	o = newOrder(tenant, n, total, now)
	ctx = withTenant(ctx, tenant)
	err = pg.BatchInTenant(ctx, s.pool, tenant.String(), func(b *pgx.Batch) error { return s.insert(ctx, b, o, key, hash) })
	if keyTaken(err) {
		o, err = s.created(ctx, tenant, key, hash)
		return o, err == nil, err
	}
	if err != nil {
		return Order{}, false, fmt.Errorf("create order: %w", err)
	}
	return o, false, nil
}

func newOrder(tenant uuid.UUID, n NewOrder, total int64, now time.Time) Order {
	return Order{
		ID: event.NewID(), Tenant: tenant, TrackingToken: newToken(), State: Created, Version: 1,
		Attempt: 1, firstAttempt: 1, Code: newCode(),
		Pickup: n.Pickup, Dropoff: n.Dropoff, Customer: n.Customer,
		Items: n.Items, Total: total, Currency: Currency, PromisedAt: n.PromisedAt,
		CreatedAt: now, UpdatedAt: now,
	}
}

// newToken returns 192 random bits, safe in a URL.
func newToken() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends when there is no randomness
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// hashRequest identifies a request by its meaning: spacing and the order of
// fields make no other request.
func hashRequest(n NewOrder) ([]byte, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("hash order: %w", err)
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

const insertOrder = `INSERT INTO orders.orders (
	tenant, id, tracking_token, state, version,
	pickup_street, pickup_number, pickup_cep, pickup_district, pickup_lat, pickup_lng, pickup_reference,
	dropoff_street, dropoff_number, dropoff_cep, dropoff_district, dropoff_lat, dropoff_lng, dropoff_reference,
	customer_name, customer_phone, items, total, currency, promised_at, created_at, updated_at,
	attempt, first_attempt, delivery_code
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30)`

// The key waits here for a concurrent request that holds it, and is refused if
// that one committed: everything sent with it then fails too.
const insertKey = `INSERT INTO orders.idempotency_keys (tenant, key, request_hash, order_id, created_at)
	VALUES ($1, $2, $3, $4, $5)`

func keyTaken(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "23505" && refused.ConstraintName == "idempotency_keys_pkey"
}

// insert queues key, order and event, which travel and commit together.
func (s *Store) insert(ctx context.Context, b *pgx.Batch, o Order, key string, hash []byte) error {
	if key != "" {
		b.Queue(insertKey, o.Tenant, key, hash, o.ID, o.CreatedAt)
	}
	p, d := o.Pickup, o.Dropoff
	b.Queue(insertOrder, o.Tenant, o.ID, o.TrackingToken, string(o.State), o.Version,
		p.Street, p.Number, p.CEP, p.District, p.Lat, p.Lng, p.Reference,
		d.Street, d.Number, d.CEP, d.District, d.Lat, d.Lng, d.Reference,
		o.Customer.Name, o.Customer.Phone, o.Items, o.Total, o.Currency, o.PromisedAt, o.CreatedAt, o.UpdatedAt,
		o.Attempt, o.firstAttempt, string(o.Code))
	return s.outbox.Queue(ctx, b, createdEvent(o))
}

// created answers a request whose key was used before.
func (s *Store) created(ctx context.Context, tenant uuid.UUID, key string, hash []byte) (Order, error) {
	var known []byte
	var o Order
	err := pg.InTenant(ctx, s.pool, tenant.String(), func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT request_hash FROM orders.idempotency_keys WHERE tenant = $1 AND key = $2`, tenant, key).
			QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
		b.Queue(selectOrder+`WHERE tenant = $1 AND id = (
			SELECT order_id FROM orders.idempotency_keys WHERE tenant = $1 AND key = $2)`, tenant, key).
			QueryRow(func(row pgx.Row) error { return scanOrder(row, &o) })
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return Order{}, fmt.Errorf("find order of idempotency key: %w", err)
	}
	if subtle.ConstantTimeCompare(known, hash) != 1 {
		return Order{}, ErrKeyReused
	}
	return o.asCreated(), nil
}

// repeatedInvalid answers a request that was acceptable when it first came.
func (s *Store) repeatedInvalid(ctx context.Context, tenant uuid.UUID, n NewOrder, key string, invalid error) (Order, bool, error) {
	if key == "" || n.PromisedAt == nil {
		return Order{}, false, invalid
	}
	hash, err := hashRequest(n)
	if err != nil {
		return Order{}, false, invalid
	}
	o, err := s.created(ctx, tenant, key, hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, ErrKeyReused):
		return Order{}, false, invalid
	case err != nil:
		return Order{}, false, err
	}
	return o, true, nil
}
