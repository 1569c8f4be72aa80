package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/test/proc"
)

// database is a durable Postgres that is killed with all its processes and
// comes back on the same data and port.
type database struct {
	cfg local.Config
	// name is of this run alone: a relay that publishes exactly once keeps its
	// place on the broker under it, and a real Kafka is shared.
	name string

	mu  sync.Mutex
	srv *local.Server
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	port, err := strconv.Atoi(proc.Port(proc.Free(t)))
	if err != nil {
		t.Fatal(err)
	}
	d := &database{
		cfg:  local.Config{Dir: pgtest.Dir(t), Port: port},
		name: fmt.Sprintf("ledger_%08x", rand.Uint32()),
	}
	if err := d.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.server().Stop(context.Background()) })
	if err := d.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *database) create(ctx context.Context) error {
	admin, err := pgx.Connect(ctx, d.server().AdminDSN())
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	role, err := pgx.ParseConfig(d.server().DSN())
	if err != nil {
		return err
	}
	_, err = admin.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s OWNER %s", d.name, role.User))
	return err
}

// dsn is the application's, to the database of this run.
func (d *database) dsn() string {
	u, err := url.Parse(d.server().DSN())
	if err != nil {
		return ""
	}
	u.Path = "/" + d.name
	return u.String()
}

func (d *database) start(ctx context.Context) error {
	if d.server() != nil {
		select {
		case <-d.server().Done():
		default:
			return nil // it runs
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	srv, err := local.Start(ctx, d.cfg)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.srv = srv
	return nil
}

func (d *database) server() *local.Server {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.srv
}

func (d *database) member() *member {
	return &member{
		name: "postgres", start: d.start, strikes: make(chan strike),
		kill: func() error { return pgtest.TryCrash(d.server()) },
		gone: func() <-chan struct{} { return d.server().Done() },
	}
}

// open gives a pool on tables that are ready for writers.
func (h *house) open() {
	h.t.Helper()
	db, err := pg.Open(h.t.Context(), h.database.dsn(), pg.Config{MaxConns: 24, IdleInTransaction: -1})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(db.Close)
	h.db = db
	h.must(pg.Migrate(h.t.Context(), db, tables.Migration()))
	h.must(tables.EnsureDays(h.t.Context(), db, time.Now()))
	h.must(h.ob.Declare(h.t.Context(), db))
	h.exec(`CREATE SCHEMA ledger`)
	h.exec(`CREATE TABLE ledger.aggregate (id text PRIMARY KEY, version bigint NOT NULL)`)
	h.exec(`CREATE TABLE ledger.fact (token text PRIMARY KEY, aggregate text NOT NULL, n bigint NOT NULL)`)
	h.exec(`INSERT INTO ledger.aggregate SELECT 'a' || i, 0 FROM generate_series(0, $1::int - 1) i UNION VALUES ('probe', 0), ('long', 0), ('bulk', 0)`, aggregates)
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.db.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

func (h *house) number(sql string, args ...any) int64 {
	h.t.Helper()
	n, err := ask[int64](h.t.Context(), h.db, sql, args...)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// ask gives the one value of a query.
func ask[T any](ctx context.Context, db *pgxpool.Pool, sql string, args ...any) (v T, err error) {
	if err := db.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		return v, fmt.Errorf("%s: %w", sql, err)
	}
	return v, nil
}
