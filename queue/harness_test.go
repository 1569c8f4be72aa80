package queue

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// The property takes a database and hundreds of statements for each check:
// fewer of them, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("20"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

// world is a database with queues.
type world struct {
	t   testing.TB
	dsn string
	db  *pgxpool.Pool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldOn(t, pgtest.New(t))
}

func worldOn(t testing.TB, dsn string) *world {
	t.Helper()
	w := &world{t: t, dsn: dsn, db: openPool(t, dsn)}
	if err := pg.Migrate(t.Context(), w.db, Migration()); err != nil {
		t.Fatal(err)
	}
	return w
}

func openPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// queue declares a queue and makes a handle on it.
func (w *world) queue(name string, s Settings) *Queue {
	w.t.Helper()
	return w.tenantQueue("", name, s)
}

func (w *world) tenantQueue(tenant, name string, s Settings) *Queue {
	w.t.Helper()
	if err := Declare(w.t.Context(), w.db, tenant, name, s); err != nil {
		w.t.Fatal(err)
	}
	return New(w.db, Config{Tenant: tenant, Name: name})
}

func (w *world) send(q *Queue, messages ...Message) []Sent {
	w.t.Helper()
	sent, err := q.Send(w.t.Context(), w.db, messages...)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

func text(bodies ...string) []Message {
	out := make([]Message, len(bodies))
	for i, b := range bodies {
		out[i].Body = []byte(b)
	}
	return out
}

// receive takes what is there, without waiting.
func (w *world) receive(q *Queue, n int) []Delivery {
	w.t.Helper()
	got, err := q.Receive(w.t.Context(), ReceiveOptions{Max: n})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// one waits for a message.
func (w *world) one(q *Queue) Delivery {
	w.t.Helper()
	var got []Delivery
	w.until("there is a message", func() bool { got = w.receive(q, 1); return len(got) == 1 })
	return got[0]
}

func (w *world) ack(q *Queue, ds ...Delivery) {
	w.t.Helper()
	if err := q.Ack(w.t.Context(), w.db, receipts(ds)...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) nack(q *Queue, delay time.Duration, ds ...Delivery) {
	w.t.Helper()
	if err := q.Nack(w.t.Context(), w.db, delay, "as the test wants it", receipts(ds)...); err != nil {
		w.t.Fatal(err)
	}
}

func receipts(ds []Delivery) (all []string) {
	for _, d := range ds {
		all = append(all, d.Receipt)
	}
	return all
}

func bodies(ds []Delivery) string {
	s := ""
	for i, d := range ds {
		if i > 0 {
			s += " "
		}
		s += string(d.Body)
	}
	return s
}

// lapse ends leases now, as time would.
func (w *world) lapse(ds ...Delivery) {
	w.t.Helper()
	for _, d := range ds {
		w.exec(`UPDATE waybill.queue_messages SET due_at = now() - interval '1 ms' WHERE id = $1 AND state = 'leased'`, d.ID)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) number(sql string, args ...any) (n int64) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) stats(q *Queue) Stats {
	w.t.Helper()
	s, err := q.Stats(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		if !pause(ctx, 10*time.Millisecond) {
			w.t.Fatalf("not so after a minute: %s", what)
		}
	}
}

func numbered(n int) []Message {
	out := make([]Message, n)
	for i := range out {
		out[i].Body = fmt.Append(nil, i)
	}
	return out
}

// contextOf is a context for parts that run beside a test, with its stop.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(t.Context()))
}
