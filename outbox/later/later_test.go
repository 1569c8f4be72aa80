package later_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/later"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const schema = `{"type":"record","name":"Reminder","namespace":"test","fields":[
	{"name":"id","type":"string"},{"name":"n","type":"long"}]}`

var contract = event.MustContract("reminders", "/test", schema)

type reminder struct {
	ID string `avro:"id"`
	N  int64  `avro:"n"`
}

func (reminder) EventContract() *event.Contract { return contract }
func (r reminder) EventKey() string             { return r.ID }
func (r reminder) EventSequence() int64         { return r.N }

type world struct {
	t  *testing.T
	db *pgxpool.Pool
	ob *outbox.Outbox
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.Migrated(t, tables.Migration()), pg.Config{})
	w := &world{t: t, db: db, ob: outbox.New([]*event.Contract{contract}, outbox.Config{})}
	w.must(err)
	t.Cleanup(db.Close)
	w.must(tables.EnsureDays(t.Context(), db, time.Now()))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func tenant(ctx context.Context) context.Context { return event.WithTenant(ctx, "t1") }

func (w *world) add(due time.Time, key string, n ...int64) (ids []uuid.UUID) {
	w.t.Helper()
	w.must(pgx.BeginFunc(w.t.Context(), w.db, func(tx pgx.Tx) error {
		var all []event.Data
		for _, n := range n {
			all = append(all, reminder{key, n})
		}
		var err error
		ids, err = w.ob.At(due).Add(tenant(w.t.Context()), tx, all...)
		return err
	}))
	return ids
}

// left are the sequences of a key's events in the outbox, in the order they were
// written there.
func (w *world) left(key string) (out []int64) {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT sequence FROM waybill.outbox_events WHERE subject = $1 ORDER BY xid, ctid`, key)
	w.must(err)
	out, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	w.must(err)
	return out
}

func (w *world) waiting() (n int) {
	w.t.Helper()
	w.must(w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM waybill.outbox_later`).Scan(&n))
	return n
}

func (w *world) eventually(ok func() bool) {
	w.t.Helper()
	for late := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			w.t.Fatal("it does not come about")
		}
	}
}

func (w *world) run(cfg later.Config) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- later.New(w.db, cfg).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func TestAnEventLeavesWhenItIsDueAndNotBefore(t *testing.T) {
	w := newWorld(t)
	w.run(later.Config{Every: 10 * time.Millisecond})
	due := time.Now().Add(1500 * time.Millisecond).Truncate(time.Millisecond)
	ids := w.add(due, "a", 1)
	w.add(time.Now().Add(time.Hour), "b", 1)
	w.eventually(func() bool { return len(w.left("a")) == 1 })
	var now, ceTime time.Time
	var id uuid.UUID
	w.must(w.db.QueryRow(t.Context(), `SELECT clock_timestamp(), time, id FROM waybill.outbox_events`).Scan(&now, &ceTime, &id))
	if now.Before(due) {
		t.Errorf("it left at %s, due at %s", now, due)
	}
	if id != ids[0] || !ceTime.Equal(due.Truncate(time.Millisecond)) || !event.IDTime(id).Equal(due.UTC().Truncate(time.Millisecond)) {
		t.Errorf("id %s of %s, time %s; want %s of %s", id, event.IDTime(id), ceTime, ids[0], due)
	}
	if w.waiting() != 1 || len(w.left("b")) != 0 {
		t.Errorf("%d wait", w.waiting())
	}
}

func TestItLeavesOnlyIfItsTransactionCommits(t *testing.T) {
	w := newWorld(t)
	tx, err := w.db.Begin(t.Context())
	w.must(err)
	_, err = w.ob.At(time.Now()).Add(tenant(t.Context()), tx, reminder{"a", 1})
	w.must(err)
	w.must(tx.Rollback(t.Context()))
	w.add(time.Now().Add(-time.Minute), "b", 1)
	w.run(later.Config{Every: 10 * time.Millisecond})
	w.eventually(func() bool { return len(w.left("b")) == 1 })
	if len(w.left("a")) != 0 || w.waiting() != 0 {
		t.Errorf("left %v, %d wait", w.left("a"), w.waiting())
	}
}

// Several movers, of which some end at any moment, move each event once, and a
// key's in the order of their moments.
func TestMoversThatComeAndGoMoveEachEventOnceInOrder(t *testing.T) {
	w := newWorld(t)
	const events = 600
	start := time.Now().Add(-time.Minute)
	for n := events; n > 0; n-- { // written the other way round
		w.add(start.Add(time.Duration(n)*time.Millisecond), fmt.Sprint("k", n%3), int64(n))
	}
	for i := 0; w.waiting() > 0; i++ {
		stop, other := w.run(later.Config{AtOnce: 7, Every: time.Millisecond}), w.run(later.Config{AtOnce: 5, Every: time.Millisecond})
		time.Sleep(time.Duration(i%5) * 3 * time.Millisecond)
		stop()
		other()
	}
	total := 0
	for k := range 3 {
		got := w.left(fmt.Sprint("k", k))
		total += len(got)
		if !slices.IsSorted(got) {
			t.Errorf("key %d: %v", k, got)
		}
	}
	if total != events {
		t.Errorf("%d left, want %d", total, events)
	}
}

func TestWhatWaitsCanBeTakenBackByItsTenantAlone(t *testing.T) {
	w := newWorld(t)
	ids := w.add(time.Now().Add(time.Hour), "a", 1, 2)
	cancel := func(ctx context.Context, ids ...uuid.UUID) (n int) {
		w.must(pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) (err error) {
			n, err = w.ob.Cancel(ctx, tx, ids...)
			return err
		}))
		return n
	}
	if n := cancel(event.WithTenant(t.Context(), "t2"), ids...); n != 0 {
		t.Errorf("another tenant took %d back", n)
	}
	if n := cancel(tenant(t.Context()), ids[0], uuid.New()); n != 1 || w.waiting() != 1 {
		t.Errorf("%d were taken back, %d wait", n, w.waiting())
	}
	err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		_, err := w.ob.Cancel(t.Context(), tx, ids...)
		return err
	})
	if err == nil {
		t.Error("without a tenant it takes back")
	}
}
