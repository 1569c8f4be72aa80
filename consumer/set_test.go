package consumer

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// keepSet is a handler of sets.
func keepSet(ctx context.Context, tx pgx.Tx, es []event.Of[moved]) error {
	keys, ns := make([]string, len(es)), make([]int64, len(es))
	for i, e := range es {
		keys[i], ns[i] = e.Data.Account, e.Data.N
	}
	_, err := tx.Exec(ctx, `INSERT INTO effect (key, n) SELECT * FROM unnest($1::text[], $2::bigint[])`, keys, ns)
	return err
}

type setHandler func(context.Context, pgx.Tx, []event.Of[moved]) error

func inSets(h setHandler) func(*setup) {
	return func(s *setup) {
		s.handlers = func(g *Group, c *event.Contract) { onBatch(g, c, h) }
	}
}

func TestASetHoldsWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.many(2000, 100)
	again := w.record("k0")
	w.publish(again)
	for range 3 {
		same := *again
		w.publish(&same)
	}
	var most atomic.Int64
	w.start(nil, inSets(func(ctx context.Context, tx pgx.Tx, es []event.Of[moved]) error {
		if n := int64(len(es)); n > most.Load() {
			most.Store(n)
		}
		return keepSet(ctx, tx, es)
	}), func(s *setup) { s.cfg.MaxBatch = 300 })
	w.settled()
	if n := most.Load(); n < 10 || n > 300 {
		t.Errorf("the largest set has %d events, limit 300", n)
	}
	w.move("k1", "k2")
	w.settled()
}

func TestTheEventThatFailsItsSetStandsAloneInTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mended atomic.Bool
	bad := moved{"k5", 7}
	w.many(400, 20)
	w.start(nil, inSets(func(ctx context.Context, tx pgx.Tx, es []event.Of[moved]) error {
		if err := keepSet(ctx, tx, es); err != nil {
			return err
		}
		if !mended.Load() && slices.ContainsFunc(es, func(e event.Of[moved]) bool { return e.Data == bad }) {
			return errors.New("one of them is bad")
		}
		return nil
	}))
	w.until("only its key waits", func() bool {
		k := w.parked()
		return len(k) == 1 && k[0].Key == "k5" && w.number(`SELECT count(*) FROM effect`) == 386
	})
	mended.Store(true)
	w.settled()
}

// Two types on one key: a set ends where the other type comes between.
func TestASetKeepsTheOrderOfItsKeysAcrossTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	other := w.contract
	other.Type = "test.accounts.Other"
	first := w.contract.Type
	for i := range 300 {
		w.contract.Type = first
		if i%3 == 2 {
			w.contract.Type = other.Type
		}
		w.move([]string{"a", "b", "c", "d"}[i%4])
	}
	w.contract.Type = first
	w.start(nil, func(s *setup) {
		s.handlers = func(g *Group, c *event.Contract) {
			onBatch(g, c, keepSet)
			on(g, &other, keep)
		}
	})
	w.settled()
}
