package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Settings of a queue. A zero field is its default.
type Settings struct {
	// Lease is how long a worker has a message, 30 s by default; 1 s to 12 h.
	Lease time.Duration
	// MaxDeliveries is how often a message is delivered before it is dead, 10
	// by default, at most 1000.
	MaxDeliveries int
	// TTL is how long a message may wait to be taken, at most 365 days. By
	// default it waits for ever.
	TTL time.Duration
	// MaxLength is how many messages the queue holds before senders are
	// refused, a million by default.
	MaxLength int64
	// Dedupe is how long a dedupe id is remembered, 10 minutes by default, at
	// most 30 days.
	Dedupe time.Duration
	// KeepDead is how long dead letters are kept, 30 days by default.
	KeepDead time.Duration
	// DeadLetter names another queue of the same tenant that dead messages go
	// to, to be delivered there. By default they stay with this queue, to be
	// looked at and redriven.
	DeadLetter string
}

func (s Settings) withDefaults() Settings {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&s.Lease, 30*time.Second)
	def(&s.Dedupe, 10*time.Minute)
	def(&s.KeepDead, 30*24*time.Hour)
	if s.MaxDeliveries == 0 {
		s.MaxDeliveries = 10
	}
	if s.MaxLength == 0 {
		s.MaxLength = 1_000_000
	}
	return s
}

const (
	day      = 24 * time.Hour
	minLease = time.Second
	maxLease = 12 * time.Hour
	maxDelay = 30 * day
	maxTTL   = 365 * day
)

func (s Settings) check() error {
	return errors.Join(
		within("lease", s.Lease, minLease, maxLease),
		within("ttl", s.TTL, 0, maxTTL),
		within("dedupe window", s.Dedupe, time.Second, 30*day),
		within("time to keep the dead", s.KeepDead, time.Minute, 10*maxTTL),
		withinNumber("delivery limit", int64(s.MaxDeliveries), 1, 1000),
		withinNumber("length limit", s.MaxLength, 1, 1_000_000_000),
	)
}

func within(what string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%w %s of %s: want %s to %s", ErrInvalid, what, d, least, most)
	}
	return nil
}

func withinNumber(what string, n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%w %s of %d: want %d to %d", ErrInvalid, what, n, least, most)
	}
	return nil
}

// ErrTooMany is of a queue that would be one too many for its tenant.
var ErrTooMany = errors.New("too many queues")

// Declare creates a queue, or gives one that is there these settings. Leases
// and expiries that messages already have stay as they are.
func Declare(ctx context.Context, db DB, tenant, name string, s Settings) error {
	return DeclareWithin(ctx, db, math.MaxInt32, tenant, name, s)
}

// DeclareWithin is Declare for a caller that is not trusted with any number: a
// tenant that has most queues gets [ErrTooMany] instead of another. Those who
// create at the same instant may get one more each.
func DeclareWithin(ctx context.Context, db DB, most int, tenant, name string, s Settings) error {
	s = s.withDefaults()
	if err := errors.Join(checkName(tenant, name), s.check()); err != nil {
		return err
	}
	if s.DeadLetter == name {
		return fmt.Errorf("%w dead-letter queue %q: it is the queue itself", ErrInvalid, name)
	}
	var found, free bool
	err := db.QueryRow(ctx, `
		WITH dead AS (SELECT id FROM waybill.queues WHERE tenant = $1 AND name = $9),
		free AS (
			SELECT FROM waybill.queues WHERE tenant = $1 AND name = $2
			UNION ALL SELECT WHERE (SELECT count(*) FROM waybill.queues WHERE tenant = $1) < $10),
		put AS (
			INSERT INTO waybill.queues AS q (tenant, name, lease_ms, max_deliveries, ttl_ms, max_length, dedupe_ms, keep_dead_ms, dead_letter)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, (SELECT id FROM dead)
			WHERE ($9 = '' OR EXISTS (SELECT FROM dead)) AND EXISTS (SELECT FROM free)
			ON CONFLICT (tenant, name) DO UPDATE SET lease_ms = excluded.lease_ms, max_deliveries = excluded.max_deliveries,
				ttl_ms = excluded.ttl_ms, max_length = excluded.max_length, dedupe_ms = excluded.dedupe_ms,
				keep_dead_ms = excluded.keep_dead_ms, dead_letter = excluded.dead_letter
			RETURNING 1)
		SELECT EXISTS (SELECT FROM put), EXISTS (SELECT FROM free)`,
		tenant, name, s.Lease.Milliseconds(), s.MaxDeliveries, s.TTL.Milliseconds(), s.MaxLength, s.Dedupe.Milliseconds(),
		s.KeepDead.Milliseconds(), s.DeadLetter, most).Scan(&found, &free)
	var gone *pgconn.PgError
	if errors.As(err, &gone) && gone.Code == foreignKey { // removed at this moment
		err, free, found = nil, true, false
	}
	if err != nil {
		return fmt.Errorf("declare queue %s: %w", name, err)
	}
	if !free {
		return fmt.Errorf("%w: %d are there, which is the limit: remove one", ErrTooMany, most)
	}
	if !found {
		return fmt.Errorf("dead-letter queue %q: %w: declare it first", s.DeadLetter, ErrUnknown)
	}
	return nil
}

// Info is a queue and its settings.
type Info struct {
	Tenant    string
	Name      string
	CreatedAt time.Time
	Settings
}

// List is the queues of a tenant, by name.
func List(ctx context.Context, db DB, tenant string) ([]Info, error) {
	rows, err := db.Query(ctx, `SELECT q.tenant, q.name, q.created_at, q.lease_ms, q.max_deliveries, q.ttl_ms, q.max_length,
			q.dedupe_ms, q.keep_dead_ms, coalesce(d.name, '')
		FROM waybill.queues q LEFT JOIN waybill.queues d ON d.id = q.dead_letter AND d.tenant = q.tenant
		WHERE q.tenant = $1 ORDER BY q.name`, tenant)
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	all, err := pgx.CollectRows(rows, scanInfo)
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return all, nil
}

func scanInfo(row pgx.CollectableRow) (i Info, err error) {
	var lease, ttl, dedupe, keep int64
	err = row.Scan(&i.Tenant, &i.Name, &i.CreatedAt, &lease, &i.MaxDeliveries, &ttl, &i.MaxLength, &dedupe, &keep, &i.DeadLetter)
	i.Lease, i.TTL, i.Dedupe, i.KeepDead = milliseconds(lease), milliseconds(ttl), milliseconds(dedupe), milliseconds(keep)
	return i, err
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
