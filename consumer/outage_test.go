package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
)

func TestAKilledConnectionCountsAgainstNoEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "b", "a")
	var kills atomic.Int32
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if err := keep(ctx, tx, e); err != nil {
			return err
		}
		if kills.Add(1) <= 10 {
			w.exec(`SELECT pg_terminate_backend($1)`, int32(tx.Conn().PgConn().PID()))
			_, err := tx.Exec(ctx, `SELECT 1`)
			return err
		}
		return nil
	})
	w.settled()
}

// The handler does not notice, only the commit does.
func TestAConnectionKilledBeforeCommitIsNoSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "b", "a")
	var kills atomic.Int32
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if kills.Add(1) <= 5 {
			defer w.exec(`SELECT pg_terminate_backend($1)`, int32(tx.Conn().PgConn().PID()))
		}
		return keep(ctx, tx, e)
	})
	w.settled()
}

func TestADatabaseThatIsDownParksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	v := &valve{}
	var started atomic.Int32
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		started.Add(1)
		return keep(ctx, tx, e)
	}, func(s *setup) { s.valve = v })
	for range 5 {
		for range 20 {
			w.move("a", "b", "c", "d")
		}
		w.until("some are handled", func() bool { return started.Load() > 0 })
		v.set(true)
		w.move("a", "b", "c", "d")
		<-time.After(300 * time.Millisecond) // longer than retries in place last
		v.set(false)
		started.Store(0)
	}
	w.settled()
	if n := w.number(`SELECT coalesce(max(seq), 0) FROM waybill.parked`) + w.number(`SELECT last_value - 1 FROM waybill.parked_seq_seq`); n != 0 {
		t.Errorf("%d events were parked", n)
	}
}

func TestAMemberStartsWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.move("a", "b")
	v := &valve{}
	v.set(true)
	w.start(keep, func(s *setup) { s.valve = v })
	<-time.After(500 * time.Millisecond)
	v.set(false)
	w.settled()
}

func TestShutdownIsBoundedWhenEverythingIsDown(t *testing.T) {
	t.Parallel() // it waits for a session to end
	w := newWorld(t, 1)
	db, net := &valve{}, &valve{}
	m := w.start(keep, func(s *setup) {
		s.cfg.Drain = time.Second
		s.valve = db
		s.opts = []kgo.Opt{kgo.Dialer(net.dial), kgo.SessionTimeout(6 * time.Second)}
	})
	w.move("a")
	w.settled()
	db.set(true)
	w.move("a", "b")
	<-time.After(100 * time.Millisecond)
	net.set(true)
	start := time.Now()
	m.end(t)
	t.Logf("ended within %s", time.Since(start))
	w.start(keep)
	w.settled()
}

// However long it lasts: the relay may be away for a night.
func TestAFullOutboxIsNoFaultOfTheEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "b", "a")
	var full atomic.Bool
	var refused atomic.Int32
	full.Store(true)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account == "a" && full.Load() {
			refused.Add(1)
			return fmt.Errorf("tell of it: %w", &outbox.OverloadError{Reason: outbox.BacklogOverBudget})
		}
		return keep(ctx, tx, e)
	})
	w.until("others flow", func() bool { return w.number(`SELECT count(*) FROM effect`) == 1 })
	w.until("it was tried more often than an event that is at fault", func() bool { return refused.Load() > looksAtMost })
	if p := w.parked(); len(p) > 0 {
		t.Errorf("parked: %v", p)
	}
	full.Store(false)
	w.settled()
}

// registryDown cannot be asked about one key's schema.
type registryDown struct {
	down atomic.Bool
}

var errRegistry = errors.New("registry out of reach")

func (r *registryDown) Decode(ctx context.Context, value []byte, into any, reader *avro.Schema) error {
	if err := (plain{}).Decode(ctx, value, into, reader); err != nil {
		return err
	}
	if m := into.(*moved); m.Account == "a" && r.down.Load() { //nolint:forcetypeassert // the only type here
		return errRegistry
	}
	return nil
}

func TestARegistryThatIsDownHoldsOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	r := &registryDown{}
	r.down.Store(true)
	for range 20 {
		w.move("a", "b")
	}
	w.startDecoding(r, keep, func(s *setup) {
		s.cfg.Workers = 1
		s.cfg.Infrastructure = func(err error) bool { return errors.Is(err, errRegistry) || outOfReach(err) }
	})
	w.until("others flow", func() bool { return w.number(`SELECT count(*) FROM effect`) == 20 })
	<-time.After(300 * time.Millisecond)
	if len(w.parked()) > 0 {
		t.Error("an event was parked for the registry's fault")
	}
	r.down.Store(false)
	w.settled()
}
