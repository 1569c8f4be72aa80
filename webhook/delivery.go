package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// DeliveryState is how far a delivery is.
type DeliveryState string

// The states there are.
const (
	Pending   DeliveryState = "pending"
	Delivered DeliveryState = "delivered"
	Failed    DeliveryState = "failed" // given up; can be sent again
)

// Attempt is one call of an endpoint.
type Attempt struct {
	At     time.Time `json:"at"`
	Millis int64     `json:"ms"`               // how long it took
	Status int       `json:"status,omitempty"` // of the answer; 0: there was none
	Error  string    `json:"error,omitempty"`
	Answer string    `json:"answer,omitempty"` // the beginning of it, if it failed
}

// Bounds of the log of a delivery.
const (
	maxLog    = 30  // attempts, the latest
	maxAnswer = 500 // bytes of each
)

// Delivery is an event on its way to an endpoint.
type Delivery struct {
	Endpoint   uuid.UUID
	EventID    uuid.UUID
	Type       string
	State      DeliveryState
	Attempts   int // since it was last begun
	StoredAt   time.Time
	FinishedAt *time.Time
	NextAt     *time.Time // the next attempt is due; nil if there is none
	Log        []Attempt  // oldest first
}

// DeliveryFilter chooses deliveries; what is zero admits all.
type DeliveryFilter struct {
	State  DeliveryState
	Before uuid.UUID // older than this one: the last of a page
	Since  time.Time // of events since
	Limit  int       // default 50, at most 500
}

const deliverySQL = `SELECT d.endpoint, d.event_id, d.type, d.state, d.attempts, d.stored_at, d.finished_at, u.next_at, d.log
	FROM webhook.deliveries d LEFT JOIN webhook.due u ON u.tenant = d.tenant AND u.endpoint = d.endpoint AND u.event_id = d.event_id
	WHERE d.tenant = $1 AND d.endpoint = $2`

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	return d, row.Scan(&d.Endpoint, &d.EventID, &d.Type, &d.State, &d.Attempts, &d.StoredAt, &d.FinishedAt, &d.NextAt, &d.Log)
}

// Deliveries are those of an endpoint, that of the latest event first.
func (s *Store) Deliveries(ctx context.Context, tenant string, endpoint uuid.UUID, f DeliveryFilter) (all []Delivery, err error) {
	if f.Limit <= 0 {
		f.Limit = 50
	}
	before, since := uuid.Max, uuid.Nil
	if f.Before != uuid.Nil {
		before = f.Before
	}
	if !f.Since.IsZero() {
		since = event.IDFloor(f.Since)
	}
	err = s.ofEndpoint(ctx, tenant, endpoint, func(tx pgx.Tx, _ Endpoint) error {
		rows, err := tx.Query(ctx, deliverySQL+` AND d.event_id < $3 AND d.event_id >= $4 AND ($5 = '' OR d.state = $5)
			ORDER BY d.event_id DESC LIMIT $6`, tenant, endpoint, before, since, string(f.State), min(f.Limit, 500))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanDelivery)
		return err
	})
	return all, err
}

// Delivery finds that of an event to an endpoint.
func (s *Store) Delivery(ctx context.Context, tenant string, endpoint, eventID uuid.UUID) (d Delivery, err error) {
	err = s.ofEndpoint(ctx, tenant, endpoint, func(tx pgx.Tx, _ Endpoint) error {
		rows, err := tx.Query(ctx, deliverySQL+` AND d.event_id = $3`, tenant, endpoint, eventID)
		if err != nil {
			return err
		}
		d, err = pgx.CollectExactlyOneRow(rows, scanDelivery)
		return err
	})
	return d, found(err)
}

// Body is an event as it is sent.
func (s *Store) Body(ctx context.Context, tenant string, eventID uuid.UUID) (body []byte, contentType string, err error) {
	err = s.within(ctx, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT body, content_type FROM webhook.messages WHERE tenant = $1 AND event_id = $2`, tenant, eventID).Scan(&body, &contentType)
	})
	return body, contentType, found(err)
}

// ofEndpoint runs fn on an endpoint of the tenant, or gives ErrNotFound.
func (s *Store) ofEndpoint(ctx context.Context, tenant string, id uuid.UUID, fn func(pgx.Tx, Endpoint) error) error {
	err := s.within(ctx, tenant, func(tx pgx.Tx) error {
		e := Endpoint{Tenant: tenant, ID: id}
		err := tx.QueryRow(ctx, `SELECT url, types, ordered, state FROM webhook.endpoints WHERE tenant = $1 AND id = $2`, tenant, id).
			Scan(&e.URL, &e.Types, &e.Ordered, &e.State)
		if err != nil {
			return found(err)
		}
		return fn(tx, e)
	})
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", id, err)
	}
	return nil
}
