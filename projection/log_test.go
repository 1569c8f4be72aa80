package projection_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/projection"
)

// sums adds up what is new by account, as a read model does.
type sums struct {
	log   *projection.Log
	fails atomic.Int64 // how many writes are to fail yet, after their effects
}

func (s *sums) Write(ctx context.Context, tx pgx.Tx, es []projection.Event) error {
	fresh, err := s.log.Append(ctx, tx, es)
	if err != nil {
		return err
	}
	for _, e := range fresh {
		if _, err := tx.Exec(ctx, `INSERT INTO sums AS s VALUES ($1, 1) ON CONFLICT (account) DO UPDATE SET n = s.n + 1`, e.Subject); err != nil {
			return err
		}
	}
	if s.fails.Add(-1) >= 0 {
		return errors.New("after its effects")
	}
	return nil
}

func newSums(b *bed) *sums {
	b.t.Helper()
	_, err := b.db.Exec(b.t.Context(), `CREATE TABLE sums (account text PRIMARY KEY, n bigint)`)
	b.must(err)
	s := &sums{log: projection.NewLog(b.db, projection.LogConfig{Logger: slog.New(slog.DiscardHandler)})}
	b.must(s.log.EnsureDays(b.t.Context(), time.Now()))
	return s
}

func TestWhatIsReadAgainIsProjectedOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, 3)
	s := newSums(b)
	s.fails.Store(3)
	b.publish(20, 25)
	whole := func() bool { return b.number(`SELECT count(*) FROM analytics.events`) == 500 }
	stop := b.run(s)
	b.await("500 events", whole)
	stop()
	deps := consumer.Deps{DB: b.db, Client: b.engine.Config.Client}
	if _, err := consumer.Reset(t.Context(), deps, b.group, b.topic, consumer.ToBeginning(), consumer.ResetOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := b.number(`SELECT count(*) FROM waybill.inbox`); n != 0 {
		t.Fatalf("the reset left %d claims", n)
	}
	stop = b.run(s)
	b.await("all of it again", func() bool { return b.number(`SELECT count(*) FROM waybill.inbox`) == 500 })
	stop()
	if !whole() || b.number(`SELECT count(*) FROM sums WHERE n = 25`) != 20 {
		t.Errorf("%d events, %d sums that are right", b.number(`SELECT count(*) FROM analytics.events`), b.number(`SELECT count(*) FROM sums WHERE n = 25`))
	}
	if n := b.number(`SELECT count(*) FROM analytics.events WHERE data->>'account' = subject AND (data->>'n')::bigint = sequence
		AND source = '/payments' AND type = 'test.Paid' AND time > now() - interval '1 hour'`); n != 500 {
		t.Errorf("%d of the events are as they were said", n)
	}
}

// What is not readable stops its own key only.
func TestAnUnreadableEventIsParkedAloneAndTheOthersAreProjected(t *testing.T) {
	t.Parallel()
	b := newBed(t, 1)
	s := newSums(b)
	bad := b.record("tenant-0", "bad", 1)
	bad.Value = []byte("no wire format")
	b.must(b.cl.ProduceSync(t.Context(), bad).FirstErr())
	b.publish(10, 10)
	b.run(s)
	b.await("one parked, the others projected", func() bool {
		return b.number(`SELECT count(*) FROM analytics.events`) == 100 && b.number(`SELECT count(*) FROM waybill.parked WHERE key = 'bad'`) == 1
	})
}

func eventAt(at time.Time, tenant string) projection.Event {
	id := event.IDFloor(at)
	copy(id[8:], uuid.New().NodeID()[:4])
	return projection.Event{
		Envelope: event.Envelope{ID: id, Tenant: tenant, Type: "test.Paid", Subject: "a", Sequence: 1, Time: at, Source: "/payments"},
		Data:     []byte(`{"text":"\u0000"}`), // which jsonb would refuse
	}
}

func TestAppendReturnsEachNewEventOnce(t *testing.T) {
	t.Parallel()
	db := newPool(t)
	log := projection.NewLog(db, projection.LogConfig{KeepDays: 3, Logger: slog.New(slog.DiscardHandler)})
	now := time.Now()
	a, b, c := eventAt(now, "t1"), eventAt(now, "t2"), eventAt(now.AddDate(0, 0, -2), "t1")
	add := func(es ...projection.Event) (fresh []projection.Event) {
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) (err error) {
			fresh, err = log.Append(t.Context(), tx, es)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	same := func(got []projection.Event, want ...projection.Event) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(x, y projection.Event) bool { return x.ID == y.ID }) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	same(add(a, a), a)
	same(add(a, b, c, b), b, c)
	same(add(a, b, c))
	same(add(eventAt(now.AddDate(0, 0, -5), "t1"), a, eventAt(now.Add(time.Second), "t1"))[1:])
	if got := add(eventAt(now.AddDate(0, 0, -5), "t1")); len(got) != 0 {
		t.Errorf("an event older than the log is new: %v", got)
	}
}

func TestATenantSeesItsOwnEventsAlsoInAPartition(t *testing.T) {
	t.Parallel()
	db := newPool(t)
	log := projection.NewLog(db, projection.LogConfig{})
	now := time.Now()
	if err := log.EnsureDays(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		_, err := log.Append(t.Context(), tx, []projection.Event{eventAt(now, "t1"), eventAt(now, "t2"), eventAt(now.AddDate(0, 0, -20), "t1")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	day := "analytics.events_" + now.UTC().Format("20060102")
	for _, c := range []struct {
		as, table string
		want      int64
	}{
		{`SELECT set_config('waybill.tenant', 't1', true)`, "analytics.events", 2},
		{`SELECT set_config('waybill.tenant', 't2', true)`, "analytics.events", 1},
		{`SELECT set_config('waybill.tenant', 't2', true)`, day, 1},
		{`SELECT set_config('waybill.tenant', 't2', true)`, "analytics.events_default", 0},
		{`SELECT`, "analytics.events", 0},
		{`SELECT`, day, 0},
		{projection.Operator, "analytics.events", 3},
	} {
		var n int64
		if err := numberOf(t.Context(), db, c.as, &n, "SELECT count(*) FROM "+c.table); err != nil || n != c.want {
			t.Errorf("%s from %s: %d, want %d (%v)", c.as, c.table, n, c.want, err)
		}
	}
}

// Days that are older than the log keeps leave it, those of today stay, and what
// came before its day had a partition moves there.
func TestOldDaysLeaveTheLog(t *testing.T) {
	t.Parallel()
	db := newPool(t)
	now := time.Now()
	long := projection.NewLog(db, projection.LogConfig{KeepDays: 60})
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		_, err := long.Append(t.Context(), tx, []projection.Event{eventAt(now, "t1"), eventAt(now.AddDate(0, 0, -20), "t1"), eventAt(now.AddDate(0, 0, -8), "t2")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The day of eight days ago has a partition, that of twenty has none.
	if err := long.EnsureDays(t.Context(), now.AddDate(0, 0, -8)); err != nil {
		t.Fatal(err)
	}
	short := projection.NewLog(db, projection.LogConfig{KeepDays: 7, Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- short.Run(ctx) }()
	for left := int64(-1); left != 1; {
		if err := numberOf(ctx, db, projection.Operator, &left, `SELECT count(*) FROM analytics.events`); err != nil {
			t.Fatal(err)
		}
	}
	var parts int64
	for gone := false; !gone; gone = parts == 0 {
		if err := numberOf(ctx, db, projection.Operator, &parts, fmt.Sprintf(`SELECT count(*) FROM pg_class WHERE relname = 'events_%s'`, now.AddDate(0, 0, -8).UTC().Format("20060102"))); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var today int64
	if err := numberOf(t.Context(), db, projection.Operator, &today, `SELECT count(*) FROM analytics.events_`+now.UTC().Format("20060102")); err != nil || today != 1 {
		t.Errorf("today has %d events (%v)", today, err)
	}
}
