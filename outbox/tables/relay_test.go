package tables_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/outbox/tables"
)

// noted is an event that is really published in these tests.
type noted struct {
	contract *event.Contract
	N        int64 `avro:"n"`
}

func (n noted) EventContract() *event.Contract { return n.contract }
func (noted) EventKey() string                 { return "a" }
func (n noted) EventSequence() int64           { return n.N }

// schemaID stands for the registry.
type schemaID int

func (s schemaID) RegisterText(context.Context, string, string) (int, error) { return int(s), nil }

// line is a world with a broker, and days around the real now: what is old is
// so by the retention's clock alone.
type line struct {
	*world
	engine   *brokertest.Engine
	contract *event.Contract
	ob       *outbox.Outbox
	added    int64
	clock    time.Time
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{world: newWorld(t), engine: brokertest.New(t), clock: time.Now().AddDate(0, 0, 5)}
	l.contract = event.MustContract(brokertest.Topic(t, "noted"), "/test", schemaText)
	l.ob = outbox.New([]*event.Contract{l.contract}, outbox.Config{})
	must(t, tables.EnsureDays(t.Context(), l.db, time.Now()))
	must(t, l.ob.Declare(t.Context(), l.db))
	must(t, broker.Declare(t.Context(), l.engine.Client(t), l.engine.Capabilities, broker.Topic{Name: l.contract.Topic, Partitions: 1}))
	return l
}

// add adds n events in a transaction each.
func (l *line) add(n int) {
	l.t.Helper()
	ctx := event.WithTenant(l.t.Context(), "t")
	for range n {
		l.added++
		must(l.t, pgx.BeginFunc(ctx, l.db, func(tx pgx.Tx) error {
			return l.ob.Add(ctx, tx, noted{l.contract, l.added})
		}))
	}
}

func (l *line) relay() (stop func()) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.t.Context()))
	r := relay.New(l.db, l.engine.Config.Client, schemaID(7), relay.Config{Retry: 20 * time.Millisecond})
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Errorf("relay: %v", err)
		}
	})
	l.t.Cleanup(stop)
	return stop
}

// retire makes rounds until no event is left in the table. Whoever writes
// meanwhile does so into days that are old to it.
func (l *line) retire() {
	l.t.Helper()
	l.clock = l.clock.AddDate(0, 0, 1) // strays leave once a day
	cfg := l.config()
	cfg.Now = func() time.Time { return l.clock }
	cfg.Settle = 10 * time.Second
	r := tables.NewRetention(l.db, cfg)
	eventually(l.t, "everything left the outbox", func() bool {
		_, err := r.Once(l.t.Context())
		must(l.t, err)
		return len(l.inTable("outbox_events")) == 0
	})
}

// retireWhile makes rounds as long as work takes.
func (l *line) retireWhile(work func()) {
	cfg := l.config()
	cfg.Now = func() time.Time { return l.clock }
	r := tables.NewRetention(l.db, cfg)
	ctx, stop := context.WithCancel(l.t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if _, err := r.Once(l.t.Context()); err != nil {
				l.t.Error(err)
			}
		}
	})
	work()
	stop()
	group.Wait()
}

// sequences reads the topic until it has those of the n events added, and
// gives all that it then holds.
func (l *line) sequences() (out []int64) {
	l.t.Helper()
	cl := l.engine.Client(l.t, kgo.ConsumeTopics(l.contract.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	seen := map[int64]bool{}
	for int64(len(seen)) < l.added {
		ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
		fetches := cl.PollFetches(ctx)
		cancel()
		must(l.t, fetches.Err())
		for _, r := range fetches.Records() {
			env, err := event.ReadHeaders(len(r.Headers), func(i int) (string, []byte) { return r.Headers[i].Key, r.Headers[i].Value }, r.Timestamp, "")
			must(l.t, err)
			seen[env.Sequence] = true
			out = append(out, env.Sequence)
		}
	}
	return out
}

// published waits until every event added is marked.
func (l *line) published() {
	l.t.Helper()
	eventually(l.t, "all is published", func() bool { return l.unmarked(l.t.Context()) == 0 })
}

func (l *line) onceEach() {
	l.t.Helper()
	got := l.sequences()
	for i, n := range got {
		if n != int64(i+1) {
			l.t.Fatalf("record %d is event %d of %d: %v", i, n, l.added, got)
		}
	}
	if int64(len(got)) != l.added {
		l.t.Errorf("%d records of %d events", len(got), l.added)
	}
}

// Days leave under the feet of a relay that runs, that starts again, and that
// makes its slot anew and looks for what has no mark.
func TestARelayPublishesNothingTwiceBecauseADayLeft(t *testing.T) {
	l := newLine(t)
	stop := l.relay()
	l.add(20)
	l.published()
	l.retireWhile(func() { l.add(60) })
	l.published()
	l.retire()
	l.add(10)
	l.published()
	stop()
	l.add(10)
	stop = l.relay()
	l.published()
	l.retire()
	stop()

	l.exec(`SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()`)
	stop = l.relay()
	l.add(5)
	l.published()
	l.retire()
	l.add(1)
	l.published()
	stop()
	l.onceEach()
	if n := len(l.inArchive()); n != 105 {
		t.Errorf("%d events in the archive, want the 105 that left", n)
	}
}

// A relay that died between its marks and its word to the slot is sent the
// events again. It must still find their marks.
func TestMarksStayAsLongAsTheSlotMaySendAgain(t *testing.T) {
	l := newLine(t)
	stop := l.relay()
	l.add(10)
	l.published()
	stop()
	// As if its last words to the slot had been lost: a relay stops reading,
	// and its events are marked all the same.
	l.add(10)
	for i, id := range l.unmarkedIDs() {
		l.exec(`INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset, commit_lsn)
			VALUES ($1, now(), 0, $2, pg_current_wal_insert_lsn())`, id, 10+i)
	}
	cfg := l.config()
	cfg.Now = func() time.Time { return l.clock }
	report, err := tables.NewRetention(l.db, cfg).Once(t.Context())
	must(t, err)
	if len(report.Emptied) != 0 || len(l.inTable("outbox_published")) != 20 {
		t.Fatalf("%+v", report)
	}
	stop = l.relay()
	l.add(5)
	l.published()
	l.retire()
	stop()
	l.added -= 10 // were never really published
	got := l.sequences()
	if len(got) != 15 || got[10] != 21 {
		t.Errorf("%v: events that were marked are published again", got)
	}
}

// failing is an event whose handler fails at first.
type failing struct {
	N int64 `avro:"n"`
}

// failingContract is that of TestAParkedEventOutlivesItsDay, whose topic is
// known only when it runs.
var failingContract *event.Contract

func (failing) EventContract() *event.Contract { return failingContract }
func (failing) EventKey() string               { return "a" }
func (f failing) EventSequence() int64         { return f.N }

// plain reads a value behind its registry's id.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value[5:], into)
	return err
}

// A parked event does not need the outbox's row: its own has its bytes.
func TestAParkedEventOutlivesItsDay(t *testing.T) {
	l := newLine(t)
	failingContract = l.contract
	must(t, consumer.Migrate(t.Context(), l.db))
	l.relay()
	var mended atomic.Bool
	handled := make(chan failing, 1)
	g := consumer.New(consumer.Deps{DB: l.db, Client: l.engine.Config.Client, Decoder: plain{}}, consumer.Config{
		Group: brokertest.Group(t, "failing"), From: consumer.Beginning,
		Retry: consumer.Retry{Within: 50 * time.Millisecond, Pause: 10 * time.Millisecond, Park: 100 * time.Millisecond, ParkMax: 200 * time.Millisecond},
	})
	consumer.On(g, func(_ context.Context, _ pgx.Tx, e event.Of[failing]) error {
		if !mended.Load() {
			return errors.New("not yet")
		}
		handled <- e.Data
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	l.add(1)
	eventually(t, "the event is parked", func() (parked bool) {
		must(t, l.db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM waybill.parked)`).Scan(&parked))
		return parked
	})
	l.retire()
	var value []byte
	must(t, l.db.QueryRow(t.Context(), `SELECT value FROM waybill.parked`).Scan(&value))
	a, err := archive.Open(l.dir)
	must(t, err)
	for e, err := range a.Events(uuid.Nil, uuid.Nil) {
		must(t, err)
		if !bytes.Equal(value[5:], e.Body) {
			t.Errorf("the parked row has %x, the event %x", value, e.Body)
		}
	}
	mended.Store(true)
	select {
	case got := <-handled:
		if got.N != 1 {
			t.Errorf("handled %+v", got)
		}
	case <-time.After(time.Minute):
		t.Error("the parked event was not handled once its handler could")
	}
	stop()
	must(t, <-ended)
}
