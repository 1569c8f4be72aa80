package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// noted is the event of these tests: account Account's Nth fact.
type noted struct {
	contract *event.Contract
	Account  string `avro:"account"`
	N        int64  `avro:"n"`
	Note     string `avro:"note"`
}

func (n noted) EventContract() *event.Contract { return n.contract }
func (n noted) EventKey() string               { return n.Account }
func (n noted) EventSequence() int64           { return n.N }

const notedSchema = `{"type":"record","name":"Noted","namespace":"test","fields":[
	{"name":"account","type":"string"},{"name":"n","type":"long"},{"name":"note","type":"string"}]}`

// schemaID stands for the registry, which has tests of its own.
type schemaID int

func (s schemaID) RegisterText(context.Context, string, string) (int, error) { return int(s), nil }

// world is a database with an outbox and a broker with its topic.
type world struct {
	t        testing.TB
	db       *pgxpool.Pool
	engine   *brokertest.Engine
	contract *event.Contract
	ob       *outbox.Outbox
	cfg      relay.Config    // what a test sets of its relays
	client   relay.NewClient // of its relays; the engine's if nil
	relayDB  *pgxpool.Pool   // of its relays; db if nil
}

// newRelay is a relay as the test wants it.
func (w *world) newRelay(log io.Writer) *relay.Relay {
	cfg, client, db := w.cfg, w.client, w.relayDB
	cfg.Retry = 20 * time.Millisecond
	if log != nil {
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	if client == nil {
		client = w.engine.Config.Client
	}
	if db == nil {
		db = w.db
	}
	return relay.New(db, client, schemaID(7), cfg)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, pgtest.Like(t, "relay", prepare))
}

func newWorldOn(t testing.TB, dsn string) *world {
	t.Helper()
	w := &world{t: t, engine: brokertest.New(t)}
	w.contract = event.MustContract(brokertest.Topic(t, "noted"), "/test", notedSchema)
	w.ob = outbox.New([]*event.Contract{w.contract}, outbox.Config{})
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.db = db
	var there bool
	must(t, db.QueryRow(t.Context(), `SELECT to_regclass('waybill.outbox_events') IS NOT NULL`).Scan(&there))
	if !there {
		must(t, prepare(t.Context(), dsn))
	}
	must(t, w.ob.Declare(t.Context(), db))
	cl := w.engine.Client(t)
	must(t, broker.Declare(t.Context(), cl, w.engine.Capabilities, broker.Topic{Name: w.contract.Topic, Partitions: 3}))
	return w
}

// prepare makes the tables of a world.
func prepare(ctx context.Context, dsn string) error {
	db, err := pg.Open(ctx, dsn, pg.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := pg.Migrate(ctx, db, tables.Migration(), incident.Migration()); err != nil {
		return err
	}
	return tables.EnsureDays(ctx, db, time.Now())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// relay runs a relay until the returned function is called, and waits until
// it reads the WAL.
func (w *world) relay() (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := w.newRelay(nil)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("relay: %v", err)
		}
	})
	w.t.Cleanup(stop)
	w.eventually(func() (complete bool, why string) {
		must(w.t, w.db.QueryRow(w.t.Context(), `SELECT EXISTS (SELECT FROM waybill.outbox_slots WHERE complete_at IS NOT NULL)`).Scan(&complete))
		return complete, "the slot's stream is not complete"
	})
	return stop
}

func tenant(ctx context.Context) context.Context { return event.WithTenant(ctx, "t1") }

func (w *world) add(account string, n int64) {
	w.t.Helper()
	must(w.t, pgx.BeginFunc(w.t.Context(), w.db, func(tx pgx.Tx) error {
		return w.ob.Add(tenant(w.t.Context()), tx, noted{contract: w.contract, Account: account, N: n})
	}))
}

// read returns the records of the first n events of the topic, copies
// included, and whatever else comes in the moment after.
func (w *world) read(n int) []*kgo.Record {
	w.t.Helper()
	cl := w.engine.Client(w.t, kgo.ConsumeTopics(w.contract.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var out []*kgo.Record
	ids := map[string]bool{}
	for {
		wait := 2 * time.Minute
		if len(ids) >= n {
			wait = 150 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), wait)
		fetches := cl.PollFetches(ctx)
		late := ctx.Err() != nil
		cancel()
		got := fetches.Records()
		if late && len(got) == 0 {
			if len(ids) < n {
				w.t.Fatalf("topic has %d events in %d records, want %d", len(ids), len(out), n)
			}
			return out
		}
		out = append(out, got...)
		for _, r := range got {
			ids[idOf(r)] = true
		}
	}
}

func idOf(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "ce_id" {
			return string(h.Value)
		}
	}
	return ""
}

// story is "account:n" of each first copy, by key in log order, and how many
// copies there were beyond the first.
func story(t *testing.T, recs []*kgo.Record) (byKey map[string][]int64, copies int) {
	t.Helper()
	byKey = map[string][]int64{}
	seen := map[string]bool{}
	for _, r := range recs {
		env, err := event.ReadHeaders(len(r.Headers), func(i int) (string, []byte) {
			return r.Headers[i].Key, r.Headers[i].Value
		}, r.Timestamp, "")
		must(t, err)
		if seen[env.ID.String()] {
			copies++
			continue
		}
		seen[env.ID.String()] = true
		byKey[string(r.Key)] = append(byKey[string(r.Key)], env.Sequence)
	}
	return byKey, copies
}

func TestCommittedEventIsPublishedWithItsEnvelope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	ctx := event.WithRequest(tenant(t.Context()), "req-1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	must(t, pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		return w.ob.Add(ctx, tx, noted{contract: w.contract, Account: "a", N: 3, Note: "x"})
	}))
	recs := w.read(1)
	if len(recs) != 1 {
		t.Fatalf("got %d records", len(recs))
	}
	r := recs[0]
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	want := map[string]string{
		"ce_specversion": "1.0", "ce_source": "/test", "ce_type": "test.Noted", "ce_subject": "a",
		"ce_tenant": "t1", "ce_sequence": "3", "ce_correlationid": "req-1", "ce_causationid": "req-1",
		"traceparent":  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"content-type": "application/avro",
	}
	for k, v := range want {
		if headers[k] != v {
			t.Errorf("header %s = %q, want %q", k, headers[k], v)
		}
	}
	if string(r.Key) != "a" {
		t.Errorf("key %q", r.Key)
	}
	if len(r.Value) < 5 || !slices.Equal(r.Value[:5], []byte{0, 0, 0, 0, 7}) {
		t.Fatalf("value does not begin with the schema id: % x", r.Value)
	}
	var got noted
	if _, err := w.contract.Schema.Decode(r.Value[5:], &got); err != nil || got.Account != "a" || got.N != 3 || got.Note != "x" {
		t.Errorf("body %+v, %v", got, err)
	}
}

func TestRolledBackTransactionPublishesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		must(t, w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: "gone", N: 1}))
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	// A savepoint undone inside a transaction that commits.
	must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		_ = pgx.BeginFunc(t.Context(), tx, func(inner pgx.Tx) error {
			must(t, w.ob.Add(tenant(t.Context()), inner, noted{contract: w.contract, Account: "gone", N: 2}))
			return undo
		})
		return w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: "kept", N: 1})
	}))
	got, _ := story(t, w.read(1))
	if len(got) != 1 || len(got["kept"]) != 1 {
		t.Fatalf("published %v", got)
	}
}

// Ids are given when the event is added, so a transaction that commits late
// brings ids lower than those published before. A relay with a cursor over ids
// would lose them.
func TestCommitsOutOfIDOrderLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	const n = 20
	var open []pgx.Tx
	for i := range n {
		tx, err := w.db.Begin(t.Context())
		must(t, err)
		must(t, w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: fmt.Sprintf("k%d", i), N: 1}))
		open = append(open, tx)
		if len(open) == 10 { // commit the youngest of each ten first
			slices.Reverse(open)
			for _, tx := range open {
				must(t, tx.Commit(t.Context()))
			}
			open = nil
		}
	}
	got, copies := story(t, w.read(n))
	if len(got) != n || copies != 0 {
		t.Fatalf("%d of %d keys, %d copies: %v", len(got), n, copies, got)
	}
}

func TestKeyKeepsCommitOrderUnderConcurrentWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.db.Exec(t.Context(), `CREATE TABLE account (id text PRIMARY KEY, version bigint NOT NULL)`)
	must(t, err)
	const accounts, writers, each = 5, 8, 40
	for i := range accounts {
		_, err := w.db.Exec(t.Context(), `INSERT INTO account VALUES ($1, 0)`, fmt.Sprintf("a%d", i))
		must(t, err)
	}
	stop := w.relay()
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("a%d", (writer+i)%accounts)
				err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
					var v int64
					if err := tx.QueryRow(t.Context(), `UPDATE account SET version = version + 1 WHERE id = $1 RETURNING version`, id).Scan(&v); err != nil {
						return err
					}
					return w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: id, N: v})
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
		if writer == writers/2 { // a restart in the middle
			stop()
			stop = w.relay()
		}
	}
	wg.Wait()
	got, _ := story(t, w.read(writers*each))
	total := 0
	for key, ns := range got {
		total += len(ns)
		if !slices.IsSorted(ns) || ns[0] != 1 || ns[len(ns)-1] != int64(len(ns)) {
			t.Errorf("%s: %v", key, ns)
		}
	}
	if total != writers*each {
		t.Errorf("%d events, want %d", total, writers*each)
	}
}

func TestOrderlyStopLeavesNothingToSendAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for round := range 3 {
		stop := w.relay()
		for i := range 50 {
			w.add("a", int64(round*50+i+1))
		}
		w.read((round + 1) * 50)
		stop()
	}
	recs := w.read(150)
	if got, copies := story(t, recs); copies != 0 || len(got["a"]) != 150 {
		t.Errorf("%d events, %d copies", len(got["a"]), copies)
	}
	w.marked(150)
}

// marked waits until n marks are written.
func (w *world) marked(n int) {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		var got int
		must(w.t, w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM waybill.outbox_published`).Scan(&got))
		return got >= n, fmt.Sprintf("%d marks, want %d", got, n)
	})
}

func (w *world) eventually(cond func() (bool, string)) {
	w.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, why := cond()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal(why)
		}
		<-tick.C
	}
}

func TestEventsFromBeforeTheSlotArePublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 30 {
		w.add("early", int64(i+1))
	}
	w.relay()
	w.add("late", 1)
	got, _ := story(t, w.read(31))
	if !slices.IsSorted(got["early"]) || len(got["early"]) != 30 || len(got["late"]) != 1 {
		t.Errorf("published %v", got)
	}
}

func TestLostSlotIsMadeAnewAndBackFilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.relay()
	w.add("a", 1)
	w.read(1)
	stop()
	w.marked(1)
	w.freeSlot()
	for i := range 5 {
		w.add("a", int64(i+2))
	}
	w.relay()
	got, _ := story(t, w.read(6))
	if !slices.Equal(got["a"], []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("published %v", got["a"])
	}
}

func TestIdleOutboxLetsTheSlotAdvance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	w.add("a", 1)
	w.read(1)
	_, err := w.db.Exec(t.Context(), `CREATE TABLE busy (v text)`)
	must(t, err)
	_, err = w.db.Exec(t.Context(), `INSERT INTO busy SELECT repeat('x', 200) FROM generate_series(1, 20000)`)
	must(t, err)
	var target string
	must(t, w.db.QueryRow(t.Context(), `SELECT pg_current_wal_lsn()::text`).Scan(&target))
	w.eventually(func() (bool, string) {
		var behind int64
		must(t, w.db.QueryRow(t.Context(), `SELECT ($1::pg_lsn - confirmed_flush_lsn)::bigint FROM pg_replication_slots WHERE slot_name = $2`,
			target, relay.SlotName(w.db.Config().ConnConfig.Database)).Scan(&behind))
		return behind <= 0, fmt.Sprintf("slot is %d bytes behind", behind)
	})
}

func TestSecondRelayTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.relay()
	w.add("a", 1)
	w.read(1)
	second := w.relay()
	defer second()
	w.add("a", 2)
	w.read(2)
	first()
	w.add("a", 3)
	if got, _ := story(t, w.read(3)); !slices.Equal(got["a"], []int64{1, 2, 3}) {
		t.Errorf("published %v", got["a"])
	}
}

func TestLostDatabaseConnectionIsReopened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	for i := range 10 {
		w.add("a", int64(i+1))
		if i%3 == 0 {
			_, err := w.db.Exec(t.Context(), `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND database = current_database()`)
			must(t, err)
		}
	}
	got, _ := story(t, w.read(10))
	if !slices.Equal(got["a"], []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("published %v", got["a"])
	}
}

// The limit on events in flight is far below the transaction's size: the
// reader has to wait for the broker, and the transaction still gets out.
func TestTransactionLargerThanTheLedgerPasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	r := relay.New(w.db, w.engine.Config.Client, schemaID(7), relay.Config{MaxUnmarked: 100})
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		cancel()
		must(t, <-done)
	}()
	const n = 5000
	must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		var all []event.Data
		for i := range n {
			all = append(all, noted{contract: w.contract, Account: "big", N: int64(i + 1), Note: strings.Repeat("x", 100)})
		}
		return w.ob.Add(tenant(t.Context()), tx, all...)
	}))
	got, _ := story(t, w.read(n))
	if len(got["big"]) != n || !slices.IsSorted(got["big"]) {
		t.Errorf("%d events", len(got["big"]))
	}
}

func TestUndeclaredSchemaStopsNothingSilently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay()
	_, err := w.db.Exec(t.Context(), `DELETE FROM waybill.outbox_contracts`)
	must(t, err)
	w.add("a", 1)
	// It cannot be published: its schema is unknown. Once declared it goes.
	must(t, w.ob.Declare(t.Context(), w.db))
	if got, _ := story(t, w.read(1)); len(got["a"]) != 1 {
		t.Errorf("published %v", got)
	}
}

func TestNoGoroutineOutlivesRun(t *testing.T) {
	w := newWorld(t)
	w.db.Reset()
	before := goleak.IgnoreCurrent()
	stop := w.relay()
	w.add("a", 1)
	w.marked(1)
	stop()
	w.db.Close()
	goleak.VerifyNone(t, before)
}
