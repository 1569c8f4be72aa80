package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// guarded is an outbox behind a gate that runs.
type guarded struct {
	t    *testing.T
	db   *pgxpool.Pool
	gate *outbox.Gate
	ob   *outbox.Outbox
	log  *lines
}

func guard(t *testing.T, db *pgxpool.Pool, cfg outbox.GateConfig) *guarded {
	t.Helper()
	g := &guarded{t: t, db: db, log: &lines{}}
	cfg.Slot, cfg.Interval = slotOf(db), 10*time.Millisecond
	cfg.Logger = slog.New(slog.NewTextHandler(g.log, nil))
	g.gate = outbox.NewGate(db, cfg)
	g.ob = outbox.New([]*event.Contract{known}, outbox.Config{Gate: g.gate})
	return g
}

func (g *guarded) run() {
	ctx, stop := context.WithCancel(g.t.Context())
	done := make(chan error, 1)
	go func() { done <- g.gate.Run(ctx) }()
	g.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			g.t.Error(err)
		}
	})
}

// slotOf names a slot of the test's own: slots belong to the whole server.
func slotOf(db *pgxpool.Pool) string { return "gate_" + db.Config().ConnConfig.Database }

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

func (g *guarded) add(n int) error {
	ctx := event.WithTenant(g.t.Context(), "t1")
	return pgx.BeginFunc(ctx, g.db, func(tx pgx.Tx) error {
		for range n {
			if err := g.ob.Add(ctx, tx, thing{contract: known, ID: "a", Kind: "ROUND"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// publish marks n events, as the relay does.
func (g *guarded) publish(n int) {
	g.exec(`INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset)
		SELECT id, now(), 0, 0 FROM waybill.outbox_events e
		WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id) ORDER BY id LIMIT $1`, n)
}

func (g *guarded) exec(sql string, args ...any) { exec(g.t, g.db, sql, args...) }

func exec(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// until waits for a state of the gate.
func (g *guarded) until(claim string, holds func(outbox.GateState) bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds(g.gate.State()) {
		select {
		case <-ctx.Done():
			g.t.Fatalf("not so: %s; %+v", claim, g.gate.State())
		case <-tick.C:
		}
	}
}

func open(s outbox.GateState) bool { return s.Closed == nil }

func closed(why outbox.OverloadReason) func(outbox.GateState) bool {
	return func(s outbox.GateState) bool { return s.Closed != nil && s.Closed.Reason == why }
}

func backlog(n int64) func(outbox.GateState) bool {
	return func(s outbox.GateState) bool { return s.Backlog != nil && *s.Backlog == n }
}

func TestPastTheBacklogBudgetWritersAreRefused(t *testing.T) {
	t.Parallel()
	var told []bool
	g := guard(t, database(t), outbox.GateConfig{
		MaxBacklog: 10,
		Changed:    func(_ context.Context, s outbox.GateState) { told = append(told, s.Closed == nil) },
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.gate.Run(ctx) }()
	for _, n := range []int64{10, 11} { // at the bound, and past it
		if err := g.add(int(n - backlogOf(g))); err != nil {
			t.Fatal(err)
		}
		g.until("counted", backlog(n))
	}
	g.until("closed", closed(outbox.BacklogOverBudget))
	err := g.add(1)
	var overload *outbox.OverloadError
	if !errors.As(err, &overload) || !errors.Is(err, outbox.ErrOverloaded) {
		t.Fatalf("%v", err)
	}
	if overload.Backlog != 11 || overload.MaxBacklog != 10 || overload.RetryAfter < time.Second ||
		!strings.Contains(err.Error(), "more than 10 events wait") {
		t.Errorf("%+v %v", overload, err)
	}
	if err := g.ob.Queue(t.Context(), &pgx.Batch{}, thing{}); !errors.Is(err, outbox.ErrOverloaded) {
		t.Errorf("queue: %v", err)
	}
	if s := g.gate.State(); s.Oldest == nil || time.Since(*s.Oldest) > time.Hour {
		t.Errorf("the oldest is of %v", s.Oldest)
	}
	g.publish(3)
	g.until("counted", backlog(8)) // below the bound and not yet well below
	if err := g.add(1); !errors.Is(err, outbox.ErrOverloaded) {
		t.Errorf("at four fifths: %v", err)
	}
	g.publish(1)
	g.until("open again by itself", open)
	if err := g.add(1); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(told) != 2 || told[0] || !told[1] {
		t.Errorf("told of %v", told)
	}
}

func backlogOf(g *guarded) int64 {
	b, err := outbox.ReadBacklog(g.t.Context(), g.db, 0, 1000, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	return b.Events
}

// Rows from before the column count until a relay has noted that it is past
// them.
func TestBacklogCountsWhatHasNoMark(t *testing.T) {
	t.Parallel()
	db := database(t)
	g := guard(t, db, outbox.GateConfig{})
	if err := g.add(7); err != nil {
		t.Fatal(err)
	}
	g.exec(`UPDATE waybill.outbox_events SET xid = NULL WHERE id IN (SELECT id FROM waybill.outbox_events ORDER BY id DESC LIMIT 2)`)
	g.publish(3)
	read := func(below, limit int64, workers int) outbox.Backlog {
		b, err := outbox.ReadBacklog(t.Context(), db, below, limit, workers)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var next int64
	if err := db.QueryRow(t.Context(), `SELECT pg_current_xact_id()::text::bigint`).Scan(&next); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{0, 2} {
		if b := read(0, 100, workers); b.Events != 4 || b.Oldest == nil {
			t.Errorf("of all: %+v", b)
		}
		if b := read(0, 2, workers); b.Events != 2 {
			t.Errorf("up to 2: %+v", b)
		}
		if b := read(next, 100, workers); b.Events != 0 {
			t.Errorf("above the last transaction: %+v", b)
		}
		if b := read(1, 100, workers); b.Events != 2 {
			t.Errorf("above the first transaction: %+v, want the 2 that have one", b)
		}
	}
	g.publish(100)
	if b := read(0, 100, 0); b.Events != 0 || b.Oldest != nil {
		t.Errorf("of none: %+v", b)
	}
}

func TestPastTheWALBudgetWritersAreRefused(t *testing.T) {
	t.Parallel()
	s, db := serverOf(t, local.Config{})
	g := guard(t, db, outbox.GateConfig{MaxWAL: 4 << 20})
	g.exec(`CREATE TABLE junk (t text)`)
	g.run()
	g.until("without a slot it is open", func(s outbox.GateState) bool { return s.Backlog != nil && s.WAL == nil && open(s) })
	g.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slotOf(db))
	g.until("the slot is seen", func(s outbox.GateState) bool { return s.WAL != nil && open(s) })
	g.exec(`INSERT INTO junk SELECT repeat('x', 1000) FROM generate_series(1, 6000)`)
	g.until("closed", closed(outbox.WALOverBudget))
	var overload *outbox.OverloadError
	if err := g.add(1); !errors.As(err, &overload) || overload.WAL <= 4<<20 || overload.MaxWAL != 4<<20 || !strings.Contains(err.Error(), "4 MiB") {
		t.Errorf("%v", err)
	}
	admin := connect(t, s.AdminDSN())
	g.until("open again", func(s outbox.GateState) bool {
		// The slot lets go of WAL at the next record of running transactions,
		// of which a checkpoint writes one.
		exec(t, admin, `CHECKPOINT`)
		g.exec(`SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())`, slotOf(db))
		return open(s)
	})
}

// serverOf is a server of the test's own, with the outbox's tables.
func serverOf(t *testing.T, cfg local.Config) (*local.Server, *pgxpool.Pool) {
	t.Helper()
	s := pgtest.Server(t, cfg)
	db := connect(t, s.DSN())
	migrate(t, db)
	return s, db
}

func connect(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func migrate(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	if err := pg.Migrate(t.Context(), db, tables.Migration()); err != nil {
		t.Fatal(err)
	}
	if err := tables.EnsureDays(t.Context(), db, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// An event that is only a message is lost with the slot.
func TestMessagesAreWrittenOnlyWhileASlotWillCarryThem(t *testing.T) {
	t.Parallel()
	s, db := serverOf(t, local.Config{Settings: map[string]string{"max_slot_wal_keep_size": "64MB", "max_wal_size": "64MB"}})
	g := guard(t, db, outbox.GateConfig{Message: true, MaxWAL: 1 << 40})
	if err := g.add(1); !closed(outbox.SlotUnseen)(g.gate.State()) || !errors.Is(err, outbox.ErrOverloaded) {
		t.Errorf("before the first look: %v", err)
	}
	g.run()
	g.until("closed without a slot", closed(outbox.SlotMissing))
	g.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slotOf(db))
	g.until("open with one", open)
	if s := g.gate.State(); s.MaxWAL != 32<<20 {
		t.Errorf("the budget is %d bytes, want half of what the server keeps", s.MaxWAL)
	}
	g.exec(`CREATE TABLE junk (t text)`)
	g.exec(`INSERT INTO junk SELECT repeat('x', 1000) FROM generate_series(1, 40000)`)
	g.until("closed past half of it", closed(outbox.WALOverBudget))
	admin := connect(t, s.AdminDSN())
	for range 4 {
		g.exec(`INSERT INTO junk SELECT repeat('x', 1000) FROM generate_series(1, 40000)`)
	}
	g.until("closed for good", func(s outbox.GateState) bool {
		exec(t, admin, `CHECKPOINT`) // at which the server gives slots up
		return closed(outbox.SlotLost)(s)
	})
	g.exec(`SELECT pg_drop_replication_slot($1)`, slotOf(db))
	g.until("closed without it", closed(outbox.SlotMissing))
	g.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slotOf(db))
	g.until("open with a new one", open)
}

func TestTheWALBudgetFollowsTheServer(t *testing.T) {
	t.Parallel()
	s, db := serverOf(t, local.Config{Settings: map[string]string{"max_slot_wal_keep_size": "-1"}})
	g := guard(t, db, outbox.GateConfig{})
	g.run()
	g.until("the default", func(s outbox.GateState) bool { return s.MaxWAL == outbox.DefaultMaxWAL })
	admin := connect(t, s.AdminDSN())
	exec(t, admin, `ALTER SYSTEM SET max_slot_wal_keep_size = '200MB'`)
	exec(t, admin, `SELECT pg_reload_conf()`)
	g.until("half of the server's", func(s outbox.GateState) bool { return s.MaxWAL == 100<<20 })
}

func TestWhileTheDatabaseIsAwayTheLastAnswerHolds(t *testing.T) {
	t.Parallel()
	cfg := local.Config{Dir: pgtest.Dir(t)}
	s, err := local.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Port = s.Port()
	db := connect(t, s.DSN())
	migrate(t, db)
	g := guard(t, db, outbox.GateConfig{MaxBacklog: 5})
	g.run()
	restart := func(holds func(outbox.GateState) bool) {
		t.Helper()
		pgtest.Crash(t, s)
		g.until("the outage is noticed", func(s outbox.GateState) bool { return s.Err != nil })
		for range 20 {
			g.until("the last answer holds", holds)
			<-time.After(5 * time.Millisecond) // in which the gate asks in vain
		}
		if s, err = local.Start(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		g.until("it is over", func(s outbox.GateState) bool { return s.Err == nil })
	}
	defer func() { _ = s.Stop(context.Background()) }()
	g.until("counted", backlog(0))
	restart(open)
	if err := g.add(6); err != nil {
		t.Fatal(err)
	}
	g.until("closed", closed(outbox.BacklogOverBudget))
	restart(closed(outbox.BacklogOverBudget))
	g.until("still closed", closed(outbox.BacklogOverBudget))
	g.publish(6)
	g.until("open", open)
	if n := g.log.count("cannot ask"); n != 2 {
		t.Errorf("two outages were told %d times", n)
	}
	if n := g.log.count("writers of events are refused"); n != 1 {
		t.Errorf("closing once was told %d times", n)
	}
}

// A write asks nobody and allocates nothing more than without a gate.
func TestAGateCostsAWriteNothing(t *testing.T) {
	db := database(t)
	ctx := event.WithTenant(t.Context(), "t1")
	e := thing{contract: known, ID: "a", Kind: "ROUND"}
	queue := func(ob *outbox.Outbox) float64 {
		return testing.AllocsPerRun(500, func() {
			var b pgx.Batch
			if err := ob.Queue(ctx, &b, e); err != nil {
				t.Fatal(err)
			}
		})
	}
	g := guard(t, db, outbox.GateConfig{})
	with, without := queue(g.ob), queue(outbox.New([]*event.Contract{known}, outbox.Config{}))
	if with > without {
		t.Errorf("%v allocations, %v without a gate", with, without)
	}
	shut := guard(t, db, outbox.GateConfig{Message: true})
	if n := testing.AllocsPerRun(500, func() {
		if shut.ob.Queue(ctx, nil, e) == nil {
			t.Fatal("queued")
		}
	}); n > 1 { // the list of events
		t.Errorf("%v allocations for a refusal", n)
	}
}

func BenchmarkQueue(b *testing.B) {
	ctx := event.WithTenant(b.Context(), "t1")
	e := thing{contract: known, ID: "a", Kind: "ROUND"}
	cfg, err := pgxpool.ParseConfig("host=127.0.0.1") // never used
	if err != nil {
		b.Fatal(err)
	}
	db, err := pgxpool.NewWithConfig(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for name, gate := range map[string]*outbox.Gate{"no gate": nil, "gate": outbox.NewGate(db, outbox.GateConfig{Slot: "s"})} {
		ob := outbox.New([]*event.Contract{known}, outbox.Config{Gate: gate})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					var batch pgx.Batch
					if err := ob.Queue(ctx, &batch, e); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// A slot that is left over from another mode says nothing of a relay that
// polls.
func TestALeftOverSlotDoesNotCloseTheGateOfARelayThatPolls(t *testing.T) {
	t.Parallel()
	_, db := serverOf(t, local.Config{})
	g := guard(t, db, outbox.GateConfig{MaxWAL: 1 << 20, Poll: true})
	g.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slotOf(db))
	g.exec(`CREATE TABLE junk (t text)`)
	g.exec(`INSERT INTO junk SELECT repeat('x', 1000) FROM generate_series(1, 6000)`)
	g.run()
	g.until("open", func(s outbox.GateState) bool { return s.Backlog != nil && s.WAL == nil && open(s) })
}
