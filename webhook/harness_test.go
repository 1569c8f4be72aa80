package webhook

import (
	"bytes"
	"flag"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
)

// Tests wait more than they work: there may be more of them than cores, unless
// the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

const patience = 2 * time.Minute

var masterKey = bytes.Repeat([]byte{7}, seal.KeySize)

// world is a database with a store on it, whose endpoints may be on this machine.
type world struct {
	t     testing.TB
	db    *pgxpool.Pool
	box   *seal.Box
	guard *guard.Guard
	store *Store
	logs  *lines
}

func newWorld(t testing.TB) *world {
	t.Helper()
	if t, ok := t.(*testing.T); ok {
		t.Parallel()
	}
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{MaxConns: 12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := &world{t: t, db: db, guard: guard.New(guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), logs: &lines{}}
	w.must(pg.Migrate(t.Context(), db, incident.Migration(), Migration()))
	w.must(EnsureDays(t.Context(), db))
	w.box, err = seal.New(masterKey)
	w.must(err)
	w.store = NewStore(db, w.box, w.guard, StoreConfig{MaxEndpoints: 5})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(tenant, url string, types ...string) Endpoint {
	w.t.Helper()
	e, err := w.store.Create(w.t.Context(), tenant, Settings{URL: url, Types: types})
	w.must(err)
	return e
}

func (w *world) key(e Endpoint) string {
	w.t.Helper()
	all, err := w.store.Secrets(w.t.Context(), e.Tenant, e.ID)
	w.must(err)
	return all[0].Key
}

// fan hands events over in a transaction of their own.
func (w *world) fan(events ...Event) {
	w.t.Helper()
	w.must(pgx.BeginFunc(w.t.Context(), w.db, func(tx pgx.Tx) error { return w.store.Fan(w.t.Context(), tx, events...) }))
}

func anEvent(tenant, typ string) Event {
	return Event{ID: event.NewID(), Tenant: tenant, Type: typ, Body: []byte(`{"a":1}`)}
}

// count counts rows of all tenants.
func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	w.must(asOperator(w.t.Context(), w.db, func(tx pgx.Tx) error { return tx.QueryRow(w.t.Context(), sql, args...).Scan(&n) }))
	return n
}

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: not after %s\n%s", what, patience, w.logs)
		}
	}
}

func (w *world) delivery(e Endpoint, id uuid.UUID) Delivery {
	w.t.Helper()
	d, err := w.store.Delivery(w.t.Context(), e.Tenant, e.ID, id)
	w.must(err)
	return d
}

// lines keeps what is logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.MultiWriter(l), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
