package consumer

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// keepPlace keeps the partition of an event with its effect.
func keepPlace(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
	_, err := tx.Exec(ctx, `INSERT INTO effect (key, n, tenant, correlation) VALUES ($1, $2, $3, $4)`,
		e.Data.Account, e.Data.N, event.Tenant(ctx), strconv.Itoa(int(e.Partition)))
	return err
}

// widest is the most partitions that one transaction has had events of.
func (w *world) widest() int64 {
	return w.number(`SELECT coalesce(max(n), 0) FROM (SELECT count(DISTINCT correlation) AS n FROM effect GROUP BY xmin::text) AS each`)
}

// What waits shares a transaction wherever it lies.
func TestATransactionHoldsEventsOfSeveralPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 12)
	w.start(keepPlace, func(s *setup) { s.cfg.Workers = 1 })
	w.rounds("a transaction holds events of three partitions", func() bool {
		w.many(300, 100)
		w.settled()
		return w.widest() >= 3
	})
}

// A partition that was taken over costs those it shares a transaction with
// nothing: they are done again without it.
func TestOthersGoOnWithoutAPartitionThatWasTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	begun, finish := make(chan struct{}), make(chan struct{})
	hold := true // only the first event looks, and there is one worker
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if hold {
			hold = false
			close(begun)
			<-finish
		}
		return keepPlace(ctx, tx, e)
	}, func(s *setup) { s.cfg.Workers, s.cfg.Drain, s.cfg.Metrics = 1, 50*time.Millisecond, w.metrics })
	w.many(1, 1)
	<-begun
	w.many(120, 60) // gathers behind the one that is held
	lost := w.number(`SELECT partition FROM waybill.owner WHERE group_name = $1 ORDER BY partition DESC LIMIT 1`, w.group)
	w.exec(`UPDATE waybill.owner SET epoch = epoch + 1, member = 'another' WHERE group_name = $1 AND partition = $2`, w.group, lost)
	close(finish)
	w.until("it is given up, alone", func() bool { return w.counter("waybill_consumer_fenced_total") == 1 })
	w.settled() // of that partition too, once the broker still has this member for its owner
	if n := w.counter("waybill_consumer_fenced_total"); n != 1 {
		t.Errorf("%v partitions given up, one was taken over", n)
	}
}

// An event that fails stands alone in the end, and its key only waits.
func TestAFailureAmongSeveralPartitionsIsItsEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 12)
	bad := troubleWith(moved{"k3", 2}, moved{"k40", 1})
	w.many(300, 100)
	w.start(bad.keep, func(s *setup) { s.cfg.Workers = 1 })
	w.until("all others have their effects", func() bool {
		return w.number(`SELECT count(*) FROM effect`) == 300-2-3 && len(w.parked()) == 2
	})
}

// What comes in within a moment is handled together.
func TestWhatComesInIsGathered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.start(keep, func(s *setup) { s.cfg.Workers, s.cfg.Gather = 1, 250*time.Millisecond })
	w.move("k0")
	w.settled()
	before := w.transactions()
	w.rounds("an event in three or more shares its transaction", func() bool {
		for i := range 90 {
			w.move(fmt.Sprint("k", i%9))
			time.Sleep(5 * time.Millisecond) // for events that do not come at once, and are not counted by time
		}
		w.settled()
		all := w.transactions()
		n := all - before
		before = all
		return n <= 30
	})
}
