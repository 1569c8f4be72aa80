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

// BenchmarkConsume is once-only handling of an event whose effect is one row,
// by 8 workers; BenchmarkBare the same row in a transaction of its own on 8
// connections, which promises nothing. fsync is on. Compare their events/s
// from one run.
func BenchmarkConsume(b *testing.B) {
	w := newDurableWorld(b)
	recs := make([]*kgo.Record, b.N)
	for i := range recs {
		recs[i] = w.record(fmt.Sprint("k", i%1000))
	}
	w.publish(recs...)
	var n atomic.Int64
	start := time.Now() // and again at the first event: joining the group is not the point
	all := make(chan struct{})
	b.ResetTimer()
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		_, err := tx.Exec(ctx, insertEffect, e.Data.Account, e.Data.N)
		switch done := n.Add(1); {
		case done == int64(b.N):
			close(all)
		case done == 1:
			start = time.Now()
		}
		return err
	}, func(s *setup) { s.cfg.FlushEvery = time.Second })
	<-all
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "events/s")
	b.StopTimer()
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
