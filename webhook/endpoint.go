package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// State of an endpoint.
type State string

// The states there are.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled" // nothing is sent, nor kept to be sent
)

// Algorithm of an endpoint's signatures.
type Algorithm string

// The algorithms there are.
const (
	HMAC    Algorithm = "hmac"    // v1: a secret that both sides have
	Ed25519 Algorithm = "ed25519" // v1a: the receiver has a public key
)

// Settings of an endpoint. URL is required.
type Settings struct {
	URL         string
	Description string
	Types       []string  // patterns such as orders.>; none: all
	Ordered     bool      // one event of a key at a time
	Algorithm   Algorithm // default HMAC; cannot be changed
}

// Endpoint is who is called.
type Endpoint struct {
	Tenant string
	ID     uuid.UUID
	Settings
	State     State
	Reason    string // why it is disabled
	CreatedAt time.Time
	UpdatedAt time.Time

	// How it does, as its sender noted last.
	Failures     int        // in a row
	FailingSince *time.Time // nil: the last attempt succeeded
	OpenUntil    *time.Time // nothing is sent before; nil if sending
}

const maxDescription = 500 // bytes

func (s *Store) check(in *Settings) error {
	if _, err := s.guard.CheckURL(in.URL); err != nil {
		return invalid("url", fmt.Errorf("%w URL: %w", ErrInvalid, err))
	}
	if len(in.Description) > maxDescription || !plain(in.Description) {
		return invalid("description", fmt.Errorf("%w description: want a line of at most %d bytes", ErrInvalid, maxDescription))
	}
	switch in.Algorithm {
	case "":
		in.Algorithm = HMAC
	case HMAC, Ed25519:
	default:
		return invalid("algorithm", fmt.Errorf("%w algorithm %.20q: want %s or %s", ErrInvalid, in.Algorithm, HMAC, Ed25519))
	}
	if in.Types == nil {
		in.Types = []string{}
	}
	if err := checkTypes(in.Types); err != nil {
		return invalid("types", err)
	}
	return nil
}

// Create adds an endpoint and makes its first secret, which the receiver needs:
// see [Store.Secrets].
func (s *Store) Create(ctx context.Context, tenant string, in Settings) (Endpoint, error) {
	if err := s.check(&in); err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Tenant: tenant, ID: event.NewID(), Settings: in, State: Enabled}
	err := s.within(ctx, tenant, func(tx pgx.Tx) error {
		// One after another, each of which sees those before it.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('webhook endpoints ' || $1, 0))`, tenant); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhook.endpoints WHERE tenant = $1`, tenant).Scan(&n); err != nil {
			return err
		}
		if n >= s.cfg.MaxEndpoints {
			return fmt.Errorf("%w: %d; delete one", ErrTooMany, n)
		}
		err := tx.QueryRow(ctx, `INSERT INTO webhook.endpoints (tenant, id, url, description, types, ordered, algorithm, state)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING created_at, updated_at`,
			tenant, e.ID, in.URL, in.Description, in.Types, in.Ordered, in.Algorithm, e.State).Scan(&e.CreatedAt, &e.UpdatedAt)
		if err != nil {
			return err
		}
		return s.addSecret(ctx, tx, e.Tenant, e.ID, in.Algorithm)
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("create webhook endpoint: %w", err)
	}
	return e, nil
}

const endpointSQL = `SELECT e.tenant, e.id, e.url, e.description, e.types, e.ordered, e.algorithm, e.state, e.reason, e.created_at, e.updated_at,
		coalesce(l.failures, 0), l.failing_since, CASE WHEN l.open_until > now() THEN l.open_until END
	FROM webhook.endpoints e LEFT JOIN webhook.lanes l ON l.tenant = e.tenant AND l.endpoint = e.id
	WHERE e.tenant = $1`

func scanEndpoint(row pgx.CollectableRow) (e Endpoint, err error) {
	return e, row.Scan(&e.Tenant, &e.ID, &e.URL, &e.Description, &e.Types, &e.Ordered, &e.Algorithm, &e.State, &e.Reason, &e.CreatedAt, &e.UpdatedAt,
		&e.Failures, &e.FailingSince, &e.OpenUntil)
}

// Get finds an endpoint. The error is [ErrNotFound] if the tenant has none such.
func (s *Store) Get(ctx context.Context, tenant string, id uuid.UUID) (e Endpoint, err error) {
	err = s.within(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, endpointSQL+` AND e.id = $2`, tenant, id)
		if err != nil {
			return err
		}
		e, err = pgx.CollectExactlyOneRow(rows, scanEndpoint)
		return err
	})
	return e, found(err)
}

// found makes of no rows that there is no such thing.
func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

// maxListed bounds a list; no tenant has more endpoints, unless they were allowed.
const maxListed = 1000

// List is the endpoints of a tenant, the oldest first.
func (s *Store) List(ctx context.Context, tenant string) (all []Endpoint, err error) {
	err = s.within(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, endpointSQL+` ORDER BY e.id LIMIT $2`, tenant, maxListed)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanEndpoint)
		return err
	})
	return all, err
}
