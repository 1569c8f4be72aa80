package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// heard keeps what a relay logged.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, string(b))
	return len(b), nil
}

// count is how many lines have all of parts in them.
func (h *heard) count(parts ...string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, l := range h.lines {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(l, p) }) {
			n++
		}
	}
	return n
}

// loudRelay runs a relay whose log is kept.
func (w *world) loudRelay() (log *heard, stop func()) {
	w.t.Helper()
	log = &heard{}
	ctx, cancel := context.WithCancel(context.Background())
	r := w.newRelay(log)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("relay: %v", err)
		}
	})
	w.t.Cleanup(stop)
	if w.cfg.Mode == relay.Message { // what is written before there is a slot is lost
		w.told(log, 1, "reading the outbox")
	}
	return log, stop
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.db.Exec(w.t.Context(), sql, args...)
	must(w.t, err)
}

// told waits until the log has a line with all of parts, n times.
func (w *world) told(log *heard, n int, parts ...string) {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		got := log.count(parts...)
		return got >= n, fmt.Sprintf("%d lines with %q, want %d", got, parts, n)
	})
}

// A body as large as Add takes, with the largest attributes it takes.
func TestWhateverAddTakesTheBrokerTakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	long := strings.Repeat("k", 4096)
	ctx := event.WithRequest(event.WithTenant(t.Context(), long), long, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	must(t, pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		return w.ob.Add(ctx, tx, noted{contract: w.contract, Account: long, N: 1, Note: strings.Repeat("x", outbox.DefaultMaxBytes-4110)})
	}))
	w.add("after", 1)
	if got, _ := story(t, w.read(2)); len(got[long]) != 1 || len(got["after"]) != 1 {
		t.Errorf("published %d keys", len(got))
	}
}

// The server gives up a slot that keeps more WAL than it may.
func TestSlotTheServerGaveUpIsMadeAnew(t *testing.T) {
	t.Parallel()
	srv := pgtest.Server(t, local.Config{Settings: map[string]string{
		"fsync": "off", "max_slot_wal_keep_size": "1MB", "max_prepared_transactions": "4",
	}})
	w := newWorldOn(t, srv.DSN())
	stop := w.relay()
	w.add("a", 1)
	w.preparedTransaction()
	w.read(2)
	w.marked(2)
	stop()
	w.add("a", 3)
	w.loseSlot(srv.AdminDSN())
	w.add("a", 4)
	s, err := relay.ReadStatus(t.Context(), w.db, "")
	if err != nil || s.Backlog != 2 || s.Slot.WALStatus != "lost" {
		t.Fatalf("status of a lost slot: %+v, %v", s, err)
	}
	log, _ := w.loudRelay()
	w.told(log, 1, "level=ERROR", "lost")
	w.read(4)
	w.add("a", 5)
	if got, _ := story(t, w.read(5)); !slices.Equal(got["a"], []int64{1, 2, 3, 4, 5}) {
		t.Errorf("published %v", got["a"])
	}
}

// preparedTransaction adds event 2 of account a in two phases.
func (w *world) preparedTransaction() {
	w.t.Helper()
	conn, err := w.db.Acquire(w.t.Context())
	must(w.t, err)
	defer conn.Release()
	tx, err := conn.Begin(w.t.Context())
	must(w.t, err)
	must(w.t, w.ob.Add(tenant(w.t.Context()), tx, noted{contract: w.contract, Account: "a", N: 2}))
	_, err = tx.Exec(w.t.Context(), `PREPARE TRANSACTION 'two'`)
	must(w.t, err)
	_ = tx.Rollback(w.t.Context()) // there is none any more
	if n := len(w.read(1)); n != 1 {
		w.t.Errorf("%d events before the second phase", n)
	}
	w.exec(`COMMIT PREPARED 'two'`)
}

func (w *world) loseSlot(adminDSN string) {
	w.t.Helper()
	admin, err := pg.Open(w.t.Context(), adminDSN, pg.Config{})
	must(w.t, err)
	defer admin.Close()
	w.exec(`CREATE TABLE filler (v text)`)
	w.eventually(func() (bool, string) {
		w.exec(`INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 20000)`)
		_, err := admin.Exec(w.t.Context(), `CHECKPOINT`)
		must(w.t, err)
		var status string
		must(w.t, w.db.QueryRow(w.t.Context(), `SELECT wal_status FROM pg_replication_slots`).Scan(&status))
		return status == "lost", "slot is " + status
	})
}

// A publication dropped and made again: the WAL in between has none, and the
// slot would never get past it.
func TestPublicationMadeAgainDoesNotWedge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	w.add("a", 1)
	w.read(1)
	w.exec(`DROP PUBLICATION waybill_outbox`)
	w.add("a", 2)
	w.exec(`CREATE PUBLICATION waybill_outbox FOR TABLE waybill.outbox_events WITH (publish = 'insert', publish_via_partition_root = true)`)
	w.add("a", 3)
	if got, _ := story(t, w.read(3)); !slices.Equal(got["a"], []int64{1, 2, 3}) {
		t.Errorf("published %v", got["a"])
	}
}

// A schema dropped and made again leaves the publication behind, empty.
func TestPublicationWithoutTheTableIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.relay()
	stop()
	w.exec(`ALTER PUBLICATION waybill_outbox DROP TABLE waybill.outbox_events`)
	w.add("a", 1)
	log, _ := w.loudRelay()
	w.told(log, 1, "relay stopped", "waybill_outbox")
	w.add("a", 2)
	w.exec(`ALTER PUBLICATION waybill_outbox ADD TABLE waybill.outbox_events`)
	if got, _ := story(t, w.read(2)); !slices.Equal(got["a"], []int64{1, 2}) {
		t.Errorf("published %v", got["a"])
	}
}

func TestColumnsComeAndGoWhileItReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	w.exec(`ALTER TABLE waybill.outbox_events ADD COLUMN extra text DEFAULT 'x'`)
	w.add("a", 2)
	w.exec(`ALTER TABLE waybill.outbox_events DROP COLUMN extra`)
	w.add("a", 3)
	w.read(3)
	w.exec(`ALTER TABLE waybill.outbox_events RENAME COLUMN trace_parent TO tp`)
	w.exec(`INSERT INTO waybill.outbox_events SELECT gen_random_uuid(), topic, subject, source, type, time, tenant, 4, correlation_id, causation_id, tp, schema_fingerprint, body
		FROM waybill.outbox_events LIMIT 1`)
	w.told(log, 1, "relay stopped", `no column \"trace_parent\"`)
	w.exec(`ALTER TABLE waybill.outbox_events RENAME COLUMN tp TO trace_parent`)
	w.add("a", 5)
	// The WAL keeps the row as its table was. A new slot reads it from the table.
	w.eventually(func() (bool, string) {
		_, err := w.db.Exec(t.Context(), `SELECT pg_drop_replication_slot($1)`, relay.SlotName(w.db.Config().ConnConfig.Database))
		return err == nil, fmt.Sprint(err)
	})
	got, _ := story(t, w.read(5))
	slices.Sort(got["a"]) // the one written by hand has no id of its time
	if !slices.Equal(got["a"], []int64{1, 2, 3, 4, 5}) {
		t.Errorf("published %v", got["a"])
	}
}

func TestEveryWayOfWritingIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := brokertest.Topic(t, "other")
	must(t, broker.Declare(t.Context(), w.engine.Client(t), w.engine.Capabilities, broker.Topic{Name: other, Partitions: 2}))
	w.add("a", 1)
	w.relay()
	// Bodies kept out of line.
	must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		return w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: "toast", N: 1, Note: strings.Repeat("x", 300_000)})
	}))
	copyOf := func(sequence int, subject, topic string) string {
		return fmt.Sprintf(`SELECT gen_random_uuid(), '%s', '%s', source, type, time, tenant, %d, correlation_id, causation_id, trace_parent, schema_fingerprint, body
			FROM waybill.outbox_events WHERE subject = 'a' LIMIT 1`, topic, subject, sequence)
	}
	w.exec(`CREATE TABLE staged (LIKE waybill.outbox_events)`)
	w.exec(`INSERT INTO staged ` + copyOf(1, "copy", w.contract.Topic))
	conn, err := w.db.Acquire(t.Context())
	must(t, err)
	var out strings.Builder
	_, err = conn.Conn().PgConn().CopyTo(t.Context(), &out, `COPY staged TO STDOUT`)
	must(t, err)
	_, err = conn.Conn().PgConn().CopyFrom(t.Context(), strings.NewReader(out.String()), `COPY waybill.outbox_events FROM STDIN`)
	must(t, err)
	conn.Release()
	// Several topics in one commit, from a subtransaction too, then truncated.
	w.exec(`DO $do$ BEGIN
		INSERT INTO waybill.outbox_events ` + copyOf(1, "sub", w.contract.Topic) + `;
		INSERT INTO waybill.outbox_events ` + copyOf(1, "other", other) + `;
		BEGIN
			INSERT INTO waybill.outbox_events ` + copyOf(2, "sub", w.contract.Topic) + `;
		EXCEPTION WHEN division_by_zero THEN NULL; END;
		BEGIN
			INSERT INTO waybill.outbox_events ` + copyOf(98, "sub", w.contract.Topic) + `;
			PERFORM 1/0;
		EXCEPTION WHEN division_by_zero THEN NULL; END;
		INSERT INTO waybill.outbox_events ` + copyOf(3, "sub", w.contract.Topic) + `;
	END $do$`)
	w.exec(`TRUNCATE waybill.outbox_events`)
	got, copies := story(t, w.read(6))
	if copies != 0 || len(got["toast"]) != 1 || len(got["copy"]) != 1 || !slices.Equal(got["sub"], []int64{1, 2, 3}) {
		t.Errorf("published %v, %d copies", got, copies)
	}
	w.marked(7)
}

// Only a transaction that the stop cuts through may come twice.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for round := range 4 {
		stop := w.relay()
		must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
			var all []event.Data
			for i := range 2000 {
				all = append(all, noted{contract: w.contract, Account: "a", N: int64(round*2000 + i + 1)})
			}
			return w.ob.Add(tenant(t.Context()), tx, all...)
		}))
		w.marked(round*2000 + 1) // some of them
		stop()
	}
	w.relay()
	got, copies := story(t, w.read(8000))
	if len(got["a"]) != 8000 || !slices.IsSorted(got["a"]) {
		t.Errorf("%d events", len(got["a"]))
	}
	if copies > 4*2000 {
		t.Errorf("%d copies", copies)
	}
}

// The ids of a writer whose clock is behind are lower than those of the events
// before.
func TestBackFillKeepsAKeysSequenceWhateverTheClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 6 {
		w.add("a", int64(n+1))
		w.add("b", 0)
	}
	w.exec(`UPDATE waybill.outbox_events SET id = (overlay(id::text PLACING '0000' FROM 10 FOR 4))::uuid WHERE subject = 'a' AND sequence % 2 = 0`)
	w.relay()
	if got, _ := story(t, w.read(12)); !slices.Equal(got["a"], []int64{1, 2, 3, 4, 5, 6}) || len(got["b"]) != 6 {
		t.Errorf("published %v", got)
	}
}

// The broker takes everything and the database no marks.
func TestMarksThatFailFillNoLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	w.marked(1)
	w.exec(`ALTER TABLE waybill.outbox_published ADD CONSTRAINT no CHECK (false) NOT VALID`)
	must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		for i := range 50 {
			if err := w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: "a", N: int64(i + 2)}); err != nil {
				return err
			}
		}
		return nil
	}))
	w.told(log, 10, "relay stopped", "mark events as published")
	w.exec(`ALTER TABLE waybill.outbox_published DROP CONSTRAINT no`)
	w.marked(51)
	got, copies := story(t, w.read(51))
	if len(got["a"]) != 51 || !slices.IsSorted(got["a"]) {
		t.Errorf("published %v", got["a"])
	}
	if copies > 150 {
		t.Errorf("%d copies", copies)
	}
}

// Relays that start together on a new database, some of which die at once.
func TestRelaysThatStartTogetherLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 60
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range n {
			w.add("a", int64(i+1))
		}
	})
	var relays sync.WaitGroup
	for i := range 6 {
		relays.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+i*40)*time.Millisecond)
			defer cancel()
			r := relay.New(w.db, w.engine.Config.Client, schemaID(7), relay.Config{
				Retry: 5 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			})
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	relays.Wait()
	writer.Wait()
	w.relay()
	got, _ := story(t, w.read(n))
	if len(got["a"]) != n || !slices.IsSorted(got["a"]) {
		t.Errorf("published %v", got["a"])
	}
}

func TestStopIsShortWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	away := func(opts ...kgo.Opt) (*kgo.Client, error) {
		return kgo.NewClient(append(opts, kgo.SeedBrokers("127.0.0.1:1"))...)
	}
	r := relay.New(w.db, away, schemaID(7), relay.Config{Logger: slog.New(slog.DiscardHandler)})
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.eventually(func() (bool, string) {
		s, err := relay.ReadStatus(t.Context(), w.db, "")
		must(t, err)
		return s.Slot.Active && s.Backlog == 1, fmt.Sprintf("%+v", s)
	})
	began := time.Now()
	cancel()
	must(t, <-done)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("stop took %s", took)
	}
	w.relay()
	if got, _ := story(t, w.read(1)); len(got["a"]) != 1 {
		t.Errorf("published %v", got)
	}
}

// A slot waits, while it is created, for the transactions that were open. The
// status is told meanwhile, and what commits meanwhile is published.
func TestTransactionOpenWhileTheSlotIsCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx, err := w.db.Begin(t.Context())
	must(t, err)
	must(t, w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: "long", N: 1}))
	_, stop := w.loudRelay()
	w.eventually(func() (bool, string) {
		s, err := relay.ReadStatus(t.Context(), w.db, "")
		must(t, err)
		return s.Slot.Exists && s.Slot.LagBytes == nil, fmt.Sprintf("%+v", s)
	})
	w.add("meanwhile", 1)
	stop() // in the middle of the creation
	w.loudRelay()
	must(t, tx.Commit(t.Context()))
	w.add("after", 1)
	if got, _ := story(t, w.read(3)); len(got) != 3 {
		t.Errorf("published %v", got)
	}
}

// slowQueries holds up the statements that have a text in them.
type slowQueries struct {
	texts   []string
	reached chan struct{}
	release chan struct{}
	once    sync.Once
}

func (s *slowQueries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if slices.ContainsFunc(s.texts, func(text string) bool { return strings.Contains(q.SQL, text) }) {
		s.once.Do(func() { close(s.reached) })
		<-s.release
	}
	return ctx
}

func (s *slowQueries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A relay that found no slot, and was slow to make one, takes nothing back of
// what is known of the slot that another has made.
func TestALateRelayForgetsNothingOfTheSlotAnotherMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := &slowQueries{texts: []string{"UPDATE waybill.outbox_slots", "'waybill slot '"}, reached: make(chan struct{}), release: make(chan struct{})}
	cfg := w.db.Config()
	cfg.ConnConfig.Tracer = slow
	late := *w
	var err error
	late.relayDB, err = pgxpool.NewWithConfig(t.Context(), cfg)
	must(t, err)
	t.Cleanup(late.relayDB.Close)
	log, _ := late.loudRelay()
	<-slow.reached
	w.relay() // its slot is complete
	close(slow.release)
	w.told(log, 1, "standing by")
	var complete bool
	must(t, w.db.QueryRow(t.Context(), `SELECT complete_at IS NOT NULL FROM waybill.outbox_slots`).Scan(&complete))
	if !complete || w.incidents("slot_gone") > 0 {
		t.Errorf("complete %v, %d incidents", complete, w.incidents("slot_gone"))
	}
}
