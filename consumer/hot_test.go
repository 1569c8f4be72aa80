package consumer

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// A key whose handlers are slow and that has more records than memory holds:
// the other partitions go on, and in the end all is handled.
func TestAHotKeyDoesNotTakeAllMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.producer = w.engine.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	send := func(partition int32, key string, n int) {
		for range n {
			rec := w.record(key)
			rec.Partition = partition
			w.publish(rec)
		}
	}
	send(0, "hot", 100)
	hold := make(chan struct{})
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account == "hot" {
			select {
			case <-hold:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.MaxInFlight = 40; s.cfg.Metrics = w.metrics })
	w.until("the hot key is in memory", func() bool { return w.gauge("waybill_consumer_in_flight") > 10 })
	for i := range 60 {
		send(1, fmt.Sprint("k", i%6), 1)
	}
	w.until("the others flow", func() bool { return w.number(`SELECT count(*) FROM effect`) == 60 })
	// Its share is 10, and one poll of 10 may go beyond it.
	w.until("only the hot key's are in memory", func() bool { return w.gauge("waybill_consumer_in_flight") <= 20 })
	close(hold)
	w.settled()
}

// What a group is given again it only looks up: in full bundles, and without
// holding its partition's reading up, though no handler has told how long one
// takes.
func TestWhatIsReadAgainGoesByInBundles(t *testing.T) {
	t.Parallel()
	const n = 400
	w := newWorld(t, 1)
	for range n {
		w.publish(w.record("k"))
	}
	first := w.start(keep)
	w.until("handled", func() bool { return w.number(`SELECT count(*) FROM effect`) == n && w.next() == n })
	first.end(t)
	w.rounds("three events a transaction on the average", func() bool {
		w.exec(`UPDATE waybill.watermark SET next_offset = 0`)
		w.metrics = prometheus.NewRegistry()
		again := w.start(keep, func(s *setup) { s.cfg.Metrics = w.metrics; s.cfg.MaxInFlight = 100 })
		w.until("read again", func() bool { return w.next() == n })
		again.end(t)
		return w.mean("waybill_consumer_batch_events") >= 3
	})
	if got := w.number(`SELECT count(*) FROM effect`); got != n {
		t.Errorf("%d effects of %d events", got, n)
	}
}
