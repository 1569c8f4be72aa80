package consumer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

const insertEffect = `INSERT INTO effect (key, n) VALUES ($1, $2)`

// The benchmarks are of events whose effect is one row, with fsync on. Compare
// the events/s of one run, with -benchtime=100000x or more:
//
//   - BenchmarkBare has the row in a transaction of its own, on 8 connections,
//     and promises nothing;
//   - BenchmarkEach handles an event once, each in its own transaction, by 8
//     workers; BenchmarkTogether lets them share transactions;
//   - BenchmarkSet writes a set's rows in one statement; BenchmarkCopy is COPY
//     of as many rows, 1000 in a transaction, on 8 connections.
func BenchmarkEach(b *testing.B) {
	consume(b, func(s *setup) { s.cfg.MaxBatch = 1 })
}

func BenchmarkTogether(b *testing.B) {
	consume(b, func(*setup) {})
}

func BenchmarkSet(b *testing.B) {
	consume(b, func(s *setup) {
		s.handlers = func(g *Group, c *event.Contract) {
			onBatch(g, c, func(ctx context.Context, tx pgx.Tx, es []event.Of[moved]) error {
				keys, ns := make([]string, len(es)), make([]int64, len(es))
				for i, e := range es {
					keys[i], ns[i] = e.Data.Account, e.Data.N
				}
				_, err := tx.Exec(ctx, `INSERT INTO effect (key, n) SELECT * FROM unnest($1::text[], $2::bigint[])`, keys, ns)
				return err
			})
		}
	})
}

// consume measures from the first effect to the last: joining the group is not
// the point.
func consume(b *testing.B, change func(*setup)) {
	w := newDurableWorld(b)
	recs := make([]*kgo.Record, b.N)
	for i := range recs {
		recs[i] = w.record(fmt.Sprint("k", i%1000))
	}
	w.publish(recs...)
	b.ResetTimer()
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		_, err := tx.Exec(ctx, insertEffect, e.Data.Account, e.Data.N)
		return err
	}, func(s *setup) { s.cfg.FlushEvery = time.Second; s.cfg.Metrics = w.metrics }, change)
	done := func() int64 { return int64(w.counter("waybill_consumer_events_total")) }
	from := waitFor(func() bool { return done() > 0 })
	before := done()
	to := waitFor(func() bool { return done() >= int64(b.N) })
	b.ReportMetric(float64(int64(b.N)-before)/to.Sub(from).Seconds(), "events/s")
	b.ReportMetric(w.mean("waybill_consumer_batch_events"), "events/tx")
	b.StopTimer()
}

func waitFor(cond func() bool) time.Time {
	for !cond() {
		<-time.After(2 * time.Millisecond)
	}
	return time.Now()
}

func BenchmarkCopy(b *testing.B) {
	w := newDurableWorld(b)
	db := openPool(b, w.dsn, nil)
	b.ResetTimer()
	start := time.Now()
	const rows = 1000
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := next.Add(rows); i-rows < int64(b.N); i = next.Add(rows) {
				n := int(min(rows, int64(b.N)-(i-rows)))
				_, err := db.CopyFrom(b.Context(), pgx.Identifier{"effect"}, []string{"key", "n"},
					pgx.CopyFromSlice(n, func(j int) ([]any, error) { return []any{fmt.Sprint("k", j), i}, nil }))
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	workers.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "events/s")
}

func BenchmarkBare(b *testing.B) {
	w := newDurableWorld(b)
	db := openPool(b, w.dsn, nil)
	b.ResetTimer()
	start := time.Now()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := bare(b.Context(), db, i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	workers.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "events/s")
}

func bare(ctx context.Context, db *pgxpool.Pool, i int64) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertEffect, fmt.Sprint("k", i%1000), i)
		return err
	})
}

func newDurableWorld(b *testing.B) *world {
	b.Helper()
	return newWorldOn(b, 4, pgtest.Server(b, local.Config{}).DSN())
}

// mean is that of a histogram's observations.
func (w *world) mean(name string) float64 {
	all, err := w.metrics.Gather()
	if err != nil {
		w.t.Error(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleSum() / float64(h.GetSampleCount())
		}
	}
	return 0
}
