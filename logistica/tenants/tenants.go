// Package tenants knows the merchants and the API keys they present.
//
// Promise: a key is kept only as its SHA-256 and cannot be read back; a key
// that is unknown, malformed or revoked is the same [ErrUnauthenticated].
//
// Limits: an answer is remembered for [Config.CacheFor], so a key revoked by
// another process works here that much longer at most; in the process that
// revokes it, it ends at once. What was opened with a key before, such as an event
// stream, is for its keeper to end: [Directory.Left] tells when, [Config.Changed]
// when to ask. The end of a rotated key is kept
// with it, and holds everywhere to the second, but for processes that remembered
// the key before it was rotated.
package tenants

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// Scope is what a key may be used for.
type Scope string

// The scopes. A key of scope courier names a courier and is of [Platform].
const (
	Merchant Scope = "merchant"
	Courier  Scope = "courier"
	Admin    Scope = "admin"
)

// Tenant is a merchant, as found by a key, or [Platform].
type Tenant struct {
	ID      uuid.UUID
	Name    string
	Scope   Scope     // of the key
	Courier uuid.UUID // whom a key of scope courier names; nil for the others

	// Credential tells the key that was presented from others, for
	// [Directory.Left]. It opens nothing.
	Credential string
	Ends       time.Time // of that key; zero where it has no end yet
}

// Errors; compare with errors.Is.
var (
	ErrUnauthenticated = errors.New("unknown or revoked API key")
	ErrNotFound        = errors.New("no such tenant")
	ErrBusy            = errors.New("too many unknown API keys are being looked up")
)

// Config is what may be set; its zero value works.
type Config struct {
	// CacheFor is how long a key that was found stays good without asking
	// again, 30 s if zero.
	CacheFor time.Duration
	// CacheSize bounds the keys remembered, 10 000 if zero.
	CacheSize int
	// MaxLookups bounds the keys that are looked up in the database at the same
	// time, 64 if zero: guesses must not keep it from work.
	MaxLookups int
	// Changed is called when a key was revoked or rotated here: who keeps open what
	// keys opened may ask [Directory.Left]. It must not wait.
	Changed func()
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

// Directory finds tenants. It is safe for concurrent use.
type Directory struct {
	pool  *pgxpool.Pool
	keys  *cache[[32]byte, Tenant]
	names *cache[uuid.UUID, string]

	lookups chan struct{}
	changed func()
}

// New makes a directory on a migrated database.
func New(pool *pgxpool.Pool, cfg Config) *Directory {
	if cfg.CacheFor == 0 {
		cfg.CacheFor = 30 * time.Second
	}
	if cfg.CacheSize == 0 {
		cfg.CacheSize = 10_000
	}
	if cfg.MaxLookups == 0 {
		cfg.MaxLookups = 64
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	return &Directory{
		pool:  pool,
		keys:  newCache[[32]byte, Tenant](cfg.CacheSize, cfg.CacheFor, cfg.Now),
		names: newCache[uuid.UUID, string](cfg.CacheSize, cfg.CacheFor, cfg.Now),

		lookups: make(chan struct{}, cfg.MaxLookups), changed: cfg.Changed,
	}
}

// MaxName is the longest name of a tenant, in bytes.
const MaxName = 120

// Create adds a tenant.
func (d *Directory) Create(ctx context.Context, name string) (Tenant, error) {
	t := Tenant{ID: event.NewID(), Name: name}
	if err := d.put(ctx, t.ID, name); err != nil {
		return Tenant{}, fmt.Errorf("create tenant: %w", err)
	}
	return t, nil
}

func (d *Directory) put(ctx context.Context, id uuid.UUID, name string) error {
	if strings.TrimSpace(name) == "" || len(name) > MaxName {
		return fmt.Errorf("a tenant's name has between 1 and %d bytes", MaxName)
	}
	return pg.InTenant(ctx, d.pool, id.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO tenants.tenants (id, name) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name`, id, name)
		return err
	})
}

// Name is what a tenant is called.
func (d *Directory) Name(ctx context.Context, id uuid.UUID) (string, error) {
	if name, ok := d.names.get(id); ok {
		return name, nil
	}
	var name string
	err := pg.InTenant(ctx, d.pool, id.String(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT name FROM tenants.tenants WHERE id = $1`, id).Scan(&name)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read name of tenant %s: %w", id, err)
	}
	d.names.put(id, name)
	return name, nil
}
