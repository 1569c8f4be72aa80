package consumer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
)

func TestAnEventDeliveredTenTimesHasOneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	rec := w.record("a")
	for range 10 {
		again := *rec
		w.publish(&again)
	}
	w.move("a", "b")
	w.start(keep)
	w.settled()
	if n := w.number(`SELECT count(*) FROM waybill.inbox WHERE group_name = $1`, w.group); n != 3 {
		t.Errorf("%d rows in the inbox for 3 events", n)
	}
}

func TestGroupsDoNotKnowOfEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a", "b")
	w.start(keep)
	w.settled()
	var others atomic.Int32
	w.start(func(context.Context, pgx.Tx, event.Of[moved]) error { others.Add(1); return nil },
		func(s *setup) { s.cfg.Group += ".other" })
	w.until("the other group has all", func() bool { return others.Load() == 3 })
}

func TestWhatAHandlerCausesInheritsTenantAndCorrelation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	rec := w.record("a")
	w.publish(rec)
	w.start(keep)
	w.settled()
	var tenant, correlation string
	if err := w.db.QueryRow(t.Context(), `SELECT tenant, correlation FROM effect`).Scan(&tenant, &correlation); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, h := range rec.Headers {
		if h.Key == event.HeaderCorrelationID {
			want = string(h.Value)
		}
	}
	if tenant != "tenant-of-a" || correlation != want {
		t.Errorf("tenant %q, correlation %q, want %q", tenant, correlation, want)
	}
}

func TestTypesNobodyHandlesArePassed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	strange := w.recordOf(moved{"a", 99})

	for i, h := range strange.Headers {
		if h.Key == event.HeaderType {
			strange.Headers[i].Value = []byte("test.accounts.Closed")
		}
	}
	w.publish(strange, &kgo.Record{Topic: w.contract.Topic, Value: []byte("no envelope at all")})
	w.move("a")
	w.publish(&kgo.Record{Topic: w.contract.Topic})
	w.start(keep)
	w.settled()
	w.until("the watermark passes them", func() bool { return w.next() == 4 })
}

// next is the sum of the watermarks.
func (w *world) next() int64 {
	return w.number(`SELECT coalesce(sum(next_offset), 0)::bigint FROM waybill.watermark WHERE group_name = $1`, w.group)
}

func TestAHandlerCannotPartItsEffectsFromTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a")
	var refused atomic.Int32
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if err := keep(ctx, tx, e); err != nil {
			return err
		}
		if errors.Is(tx.Commit(ctx), ErrNotYours) && errors.Is(tx.Rollback(ctx), ErrNotYours) {
			refused.Add(1)
		}
		if refused.Load() == 1 {
			return errors.New("fails after it tried to commit")
		}
		return nil
	})
	w.settled()
	if refused.Load() < 3 {
		t.Errorf("refused %d times", refused.Load())
	}
}

// A handler that swallows the error of a statement has a transaction that
// cannot commit: the event must not count as handled.
func TestASwallowedErrorIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a")
	var tries atomic.Int32
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if tries.Add(1) < 3 {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		}
		return keep(ctx, tx, e)
	})
	w.settled()
}

func TestSavepointsWorkInsideAHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a")
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1/0`)
			return err
		})
		if err == nil {
			return errors.New("no error")
		}
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return keep(ctx, tx, e) })
	})
	w.settled()
}

func TestNothingRunsOnAfterRun(t *testing.T) {
	w := newWorld(t, 3)
	w.move("a", "b", "c", "d")
	before := goleak.IgnoreCurrent()
	m := w.start(keep)
	w.settled()
	m.end(t)
	// The pool's own end with the test.
	goleak.VerifyNone(t, before,
		goleak.IgnoreTopFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"))
}

func TestShutdownWaitsForHandlersAndSavesTheirPosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a")
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	m := w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		begun <- struct{}{}
		<-finish
		return keep(ctx, tx, e)
	})
	<-begun
	m.stop()
	select {
	case <-m.done:
		t.Fatal("Run returned with a handler at work")
	case <-time.After(100 * time.Millisecond):
	}
	close(finish)
	m.end(t)
	if n := w.number(`SELECT count(*) FROM effect`); n != 1 {
		t.Errorf("%d effects, want that of the event in the handler alone", n)
	}
	if next := w.next(); next != 1 {
		t.Errorf("watermark %d, want 1", next)
	}
	w.start(keep)
	w.settled()
}

func TestAHandlerThatDoesNotEndIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a")
	begun := make(chan struct{}, 1)
	m := w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if err := keep(ctx, tx, e); err != nil {
			return err
		}
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}, func(s *setup) { s.cfg.Drain = 50 * time.Millisecond })
	<-begun
	m.end(t)
	if n := w.number(`SELECT count(*) FROM effect`) + w.number(`SELECT count(*) FROM waybill.parked`); n != 0 {
		t.Error("it left something behind")
	}
	w.start(keep)
	w.settled()
}
