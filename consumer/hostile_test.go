package consumer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// A person deletes what is parked: the key must not wait for rows that are
// gone, whichever of them they were.
func TestParkedRowsDeletedByHandFreeTheirKey(t *testing.T) {
	t.Parallel()
	for _, which := range []string{`true`, `state = 'retrying'`} {
		w := newWorld(t, 1)
		tr := troubleWith(moved{"a", 1})
		w.start(tr.keep, func(s *setup) { s.cfg.Retry.Park, s.cfg.Retry.ParkMax = time.Hour, time.Hour })
		w.move("a", "a", "b")
		w.until("parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 2 })
		w.exec(`DELETE FROM waybill.parked WHERE ` + which)
		w.move("a", "b")
		w.until("the key flows", func() bool {
			return w.number(`SELECT count(*) FROM effect WHERE key = 'a' AND n = 3`) == 1 &&
				w.number(`SELECT count(*) FROM waybill.parked`) == 0
		})
	}
}

// While a key drains, more of it comes than memory holds: others go on.
func TestADrainingKeyDoesNotFillMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1})
	hold := make(chan struct{})
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if err := tr.keep(ctx, tx, e); err != nil {
			return err
		}
		if e.Data.Account == "a" && e.Data.N < 100 { // a drain that takes its time
			select {
			case <-hold:
			case <-time.After(250 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return nil
	}, func(s *setup) { s.cfg.MaxInFlight = 100 })
	for range 100 {
		w.move("a")
	}
	w.until("all parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 100 })
	tr.mend()
	w.until("it drains", func() bool { return w.number(`SELECT count(*) FROM effect`) > 0 })
	w.move(append(slices.Repeat([]string{"a"}, 300), "b")...)
	w.until("the other key's event", func() bool { return w.number(`SELECT count(*) FROM effect WHERE key = 'b'`) == 1 })
	if n := w.number(`SELECT count(*) FROM effect WHERE key = 'a'`); n > 90 {
		t.Errorf("b waited for %d events of a", n)
	}
	close(hold)
	w.settled()
}

// Events whose handlers' own servers are down look like an outage of ours. As
// long as the database answers, others go on, and in the end they are parked.
func TestAnEventThatLooksLikeAnOutageStopsItsOwnKeyOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mended atomic.Bool
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account != "ok" && !mended.Load() {
			return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.Workers = 2 })
	for i := range 4 {
		w.move(fmt.Sprint("bad", i))
	}
	w.move("ok")
	w.until("the others flow", func() bool { return w.number(`SELECT count(*) FROM effect`) == 1 })
	mended.Store(true)
	w.settled()
}

// An event that breaks its connection every time, as one does that kills its
// backend, is parked in the end.
func TestAnEventThatBreaksItsConnectionIsParked(t *testing.T) {
	t.Parallel() // it waits long
	w := newWorld(t, 1)
	var mended atomic.Bool
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account == "a" && !mended.Load() {
			w.exec(`SELECT pg_terminate_backend($1)`, int32(tx.Conn().PgConn().PID())) // #nosec G115
			_, err := tx.Exec(ctx, `SELECT 1`)
			return err
		}
		return keep(ctx, tx, e)
	})
	w.move("a", "b")
	w.until("parked", func() bool { return len(w.parked()) == 1 })
	mended.Store(true)
	w.settled()
}

// A handler that ends its transaction by SQL has no success.
func TestATransactionEndedBySQLIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var tries atomic.Int32
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if err := keep(ctx, tx, e); err != nil {
			return err
		}
		if tries.Add(1) == 1 {
			_, err := tx.Exec(ctx, `ROLLBACK`)
			return err
		}
		return nil
	})
	w.move("a")
	w.until("tried again", func() bool { return tries.Load() == 2 })
	w.settled()
}

// Partitions that a topic gets later are new to a group, but what is in them
// came after its "now".
func TestPartitionsAddedLaterAreReadFromTheirBeginning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	now := func(s *setup) { s.cfg.From = Now }
	w.publish(w.recordOf(moved{"old", 1}))
	m := w.start(keep, now)
	w.until("it has begun", func() bool { return w.next() == 1 })
	m.end(t)
	adm := kadm.NewClient(w.producer)
	if _, err := adm.UpdatePartitions(t.Context(), 4, w.contract.Topic); err != nil {
		t.Fatal(err)
	}
	w.producer = w.engine.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil))) // one that knows all
	w.until("they are there", func() bool {
		l, err := adm.ListTopics(t.Context(), w.contract.Topic)
		return err == nil && len(l[w.contract.Topic].Partitions) == 4
	})
	for range 3 {
		for i := range 12 {
			w.move(fmt.Sprint("k", i))
		}
	}
	w.start(keep, now)
	w.settled()
}

func TestAPoolSmallerThanTheWorkersIsSlowAndNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	tr := troubleWith(moved{"a", 3})
	for range 20 {
		w.move("a", "b", "c", "d", "e", "f")
	}
	w.start(tr.keep, func(s *setup) { s.conns = 1 })
	w.until("the others flow", func() bool { return w.number(`SELECT count(*) FROM effect`) >= 102 })
	tr.mend()
	w.settled()
}

var errByHand = errors.New("by hand")

// The answer to a commit is lost: whether it happened is not known, and must
// not matter.
func TestACommitWhoseAnswerIsLostHappensOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	v := &valve{}
	var cuts atomic.Int32
	v.answer = func(p []byte) error {
		// CommandComplete of COMMIT, as the server writes it.
		if containsCommit(p) && cuts.Add(1)%3 == 0 {
			return errByHand
		}
		return nil
	}
	w.start(keep, func(s *setup) { s.valve = v; s.cfg.MaxBatch = 2 })
	for range 10 {
		w.move("a", "b", "c")
	}
	w.settled()
	if cuts.Load() < 10 {
		t.Errorf("%d commits seen", cuts.Load())
	}
}

// A database that was failed over to a standby, or has a full disk, answers and
// takes no writes. No event is to blame, however long that lasts.
func TestADatabaseThatTakesNoWritesParksNothing(t *testing.T) {
	t.Parallel() // it waits long
	w := newWorld(t, 1)
	w.start(keep)
	w.move("a", "b")
	w.settled()
	readOnly := func(is string) {
		w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ` + is + `', current_database()); END $$`)
		w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	readOnly("on")
	w.move("a", "b")
	<-time.After(16 * time.Second)
	w.exec(`SET default_transaction_read_only = off`)
	w.exec(`RESET ALL`)
	readOnly("off")
	w.settled()
	if n := w.number(`SELECT coalesce(max(last_value), 0) FROM waybill.parked_seq_seq WHERE is_called`); n != 0 {
		t.Errorf("%d events were parked", n)
	}
}

// A member that the broker cannot hear goes on with what it has, beside the
// next owner of its partitions. Neither repeats the other's effects, nor do
// keys lose their order.
func TestAMemberCutOffFromTheBrokerDoesNoHarm(t *testing.T) {
	t.Parallel() // it waits for a session to end
	w := newWorld(t, 4)
	v := &valve{}
	slow := func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		return keep(ctx, tx, e)
	}
	short := func(s *setup) { s.cfg.Drain = 100 * time.Millisecond }
	w.start(slow, short, func(s *setup) { s.opts = []kgo.Opt{kgo.Dialer(v.dial)} })
	for range 200 {
		w.move("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	}
	w.until("it works", func() bool { return w.number(`SELECT count(*) FROM effect`) > 50 })
	v.set(true)
	w.start(slow, short)
	w.settled()
}

func TestATopicThatAppearsLaterIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.contract.Topic += ".later"
	w.start(keep)
	<-time.After(2 * time.Second) // it has asked and been told
	w.declare(2)
	w.move("a", "b", "a")
	w.settled()
}

// A message without key, one with an empty one, and tombstones without a type
// share a partition with others and stop nobody.
func TestRecordsWithoutAKeyAreALaneOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for range 3 {
		w.move("a")
		rec := w.record("nobody")
		rec.Key = nil
		w.publish(rec, &kgo.Record{Topic: w.contract.Topic, Key: []byte("a")})
	}
	w.start(keep)
	w.settled()
	w.until("the watermark passes them", func() bool { return w.next() == 9 })
}

// An id that comes again with other content is the same event, whatever it
// says: the first that is handled stands.
func TestAnIdWithOtherContentIsADuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	one := w.record("a")
	other := w.recordOf(moved{"a", 99})
	other.Headers = one.Headers
	w.publish(one, other)
	w.move("a")
	w.start(keep)
	w.settled()
}

func TestPartitionsAddedUnderARunningMemberAreRead(t *testing.T) {
	t.Parallel() // it waits for the client to look again
	w := newWorld(t, 1)
	w.start(keep, func(s *setup) { s.opts = []kgo.Opt{kgo.MetadataMaxAge(5 * time.Second)} })
	w.move("a")
	w.settled()
	adm := kadm.NewClient(w.producer)
	if _, err := adm.UpdatePartitions(t.Context(), 3, w.contract.Topic); err != nil {
		t.Fatal(err)
	}
	w.producer = w.engine.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	for i := range 12 {
		w.move(fmt.Sprint("k", i))
	}
	w.settled()
}
