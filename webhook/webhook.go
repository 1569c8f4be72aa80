// Package webhook calls the addresses of tenants about events: it signs, sends,
// tries again, and keeps a log of it.
//
// It promises:
//
//   - an event that was handed over in a transaction ([Store.Fan], [On]) is sent
//     to each endpoint of its tenant that was enabled and wanted it, if and only
//     if that transaction commits; handed over twice, it is one delivery;
//   - delivery is at least once, under the event's id (the header webhook-id): a
//     sender that dies between sending and noting it sends again;
//   - a failed delivery is tried again, at lengthening and random intervals, for
//     three days; what was given up can be sent again for as long as the log is
//     kept;
//   - an endpoint that is slow, fails or is behind costs the others nothing but
//     the bounded share of connections it holds; a tenant with much to send does
//     not stand before one with little; retries do not stand before first tries;
//   - no connection is made to an address that is not public (package guard), and
//     no secret or body is logged; secrets are sealed in the database (package
//     seal);
//   - a tenant sees what is its own: every statement names it, and row-level
//     security holds beneath.
//
// Limits: events of one key arrive in any order, unless the endpoint is ordered;
// then one event of a key is sent at a time, and one that fails holds back those
// behind it until it is delivered or given up. A receiver may get an event again,
// late, after later ones: it tells them apart by their id.
package webhook

import (
	"embed"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is the tables of this package, for pg.Migrate. It needs those of
// package incident beside them.
func Migration() pg.Migration {
	return pg.Migration{Package: "webhook", Schema: "webhook", Files: files}
}

// Errors; compare with errors.Is.
var (
	ErrNotFound = errors.New("no such endpoint, or delivery")
	ErrInvalid  = errors.New("invalid")
	ErrTooMany  = errors.New("the tenant has as many endpoints as it may")
	ErrDisabled = errors.New("the endpoint is disabled: enable it first")
	ErrNoKey    = errors.New("no key to seal secrets with is configured: make one with `openssl rand -base64 32`")
)

// StoreConfig is what may be set; its zero value works.
type StoreConfig struct {
	MaxEndpoints int // of a tenant; default 100
	MaxBody      int // bytes of an event as it is sent; default 256 KiB
}

// Store is endpoints and deliveries. It is safe for concurrent use.
type Store struct {
	db    *pgxpool.Pool
	box   *seal.Box
	guard *guard.Guard
	cfg   StoreConfig
}

// NewStore makes a store that seals secrets with box and takes URLs that g lets
// through. Without a box, which may be nil, there is all but the secrets: what
// needs them fails with ErrNoKey. Where a sender uses the store, db's user must
// own the tables: days are made and dropped.
func NewStore(db *pgxpool.Pool, box *seal.Box, g *guard.Guard, cfg StoreConfig) *Store {
	if cfg.MaxEndpoints <= 0 {
		cfg.MaxEndpoints = 100
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = 256 << 10
	}
	return &Store{db, box, g, cfg}
}
