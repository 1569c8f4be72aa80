package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/queue"
)

const (
	queueWaybillPart = "queue-waybill"
	queueName        = "bench"
)

func waybillQueuePeer() queuePeer {
	return queuePeer{
		name: "waybill", part: queueWaybillPart,
		settings: "queue as it comes: Send of a batch; Receive of a batch and its Ack by each worker; with effects, queue.Work",
		prepare: func(ctx context.Context, db *pgxpool.Pool, cfg queueConfig) error {
			if err := pg.Migrate(ctx, db, queue.Migration()); err != nil {
				return err
			}
			return queue.Declare(ctx, db, "", queueName, queue.Settings{MaxLength: 2*cfg.Messages + 100_000})
		},
		clear: `TRUNCATE waybill.queue_messages`,
	}
}

// waybillQueue is ours.
type waybillQueue struct {
	db   *pgxpool.Pool
	q    *queue.Queue
	task queueTask
}

func newWaybillQueue(ctx context.Context, db *pgxpool.Pool, task queueTask) (workedQueue, error) {
	signals := queue.NewSignals(db, faults())
	go func() { _ = signals.Run(ctx) }()
	return &waybillQueue{db: db, q: queue.New(db, queue.Config{Name: queueName, Signals: signals}), task: task}, nil
}

func (w *waybillQueue) send(ctx context.Context, from, n int64) error {
	messages := make([]queue.Message, n)
	for i := range messages {
		var err error
		if messages[i], err = queue.NewJSON(numbered(from + int64(i))); err != nil {
			return err
		}
	}
	_, err := w.q.Send(ctx, w.db, messages...)
	return err
}

// numbered is the n-th message.
func numbered(n int64) parcel { return parcel{N: n, Note: note} }

var note = strings.Repeat("x", noteBytes)

func (w *waybillQueue) work(ctx context.Context, saw func(parcel)) error {
	var settled atomic.Int64
	g, working := errgroup.WithContext(ctx)
	waiting, enough := context.WithCancel(working) // who waits for one more when all are settled
	defer enough()
	for range w.task.Workers {
		g.Go(func() error {
			for waiting.Err() == nil {
				got, err := w.q.Receive(waiting, queue.ReceiveOptions{Max: w.task.Batch, Wait: time.Second})
				if err != nil && waiting.Err() == nil {
					return err
				}
				if len(got) == 0 {
					continue
				}
				receipts := make([]string, len(got))
				for i, d := range got {
					var p parcel
					if err := json.Unmarshal(d.Body, &p); err != nil {
						return err
					}
					saw(p)
					receipts[i] = d.Receipt
				}
				if err := w.q.Ack(working, w.db, receipts...); err != nil {
					return err
				}
				if settled.Add(int64(len(got))) >= w.task.Messages {
					enough()
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("%d settled: %w", settled.Load(), err)
	}
	return ctx.Err()
}

func (w *waybillQueue) once(ctx context.Context, saw func(parcel)) error {
	return queue.Work(ctx, w.q, queue.JSON(func(ctx context.Context, tx pgx.Tx, m queue.Of[parcel]) error {
		_, err := tx.Exec(ctx, insertParcel, m.Data.N)
		if err == nil {
			saw(m.Data)
		}
		return err
	}), queue.WorkerConfig{Workers: w.task.Workers, Logger: faults()})
}
