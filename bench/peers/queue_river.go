package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River with as many workers as ours, and with as many as it is fastest with.
const (
	queueRiverPart     = "queue-river"
	queueRiverManyPart = "queue-river-many"
)

// What River's own benchmark sets, so that it is as fast as it gets. Its
// defaults, 100 ms and 1 s, would have it idle most of the time.
const (
	riverCooldown = 2 * time.Millisecond
	riverPoll     = 20 * time.Millisecond
	riverMany     = 1000 // workers
)

func riverPeer() queuePeer {
	return queuePeer{
		name: "river", part: queueRiverPart,
		settings: fmt.Sprintf("InsertManyFast of a batch; as many workers; fetch cooldown %s (default 100ms) and poll interval %s (default 1s), as in its own benchmark; "+
			"completion in the background; with effects, JobCompleteTx", riverCooldown, riverPoll),
		prepare: func(ctx context.Context, db *pgxpool.Pool, _ queueConfig) error {
			m, err := rivermigrate.New(riverpgxv5.New(db), nil)
			if err != nil {
				return err
			}
			_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
			return err
		},
		clear: `TRUNCATE river_job`,
	}
}

// riverManyPeer takes more jobs at a time, on as many connections.
func riverManyPeer() queuePeer {
	p := riverPeer()
	p.name, p.part = fmt.Sprintf("river, %d workers", riverMany), queueRiverManyPart
	p.settings = fmt.Sprintf("the same with %d workers, about as many as in its own benchmark, on as many connections as the others", riverMany)
	p.prepare = nil // done
	return p
}

// Kind of River's jobs that are parcels.
func (parcel) Kind() string { return "parcel" }

// riverQueue is River's client.
type riverQueue struct {
	db      *pgxpool.Pool
	client  *river.Client[pgx.Tx] // that only inserts
	task    queueTask
	workers int
}

func newRiverQueue(_ context.Context, db *pgxpool.Pool, task queueTask) (workedQueue, error) {
	client, err := river.NewClient(riverpgxv5.New(db), &river.Config{Logger: faults()})
	return &riverQueue{db: db, client: client, task: task, workers: task.Workers}, err
}

func newRiverManyQueue(_ context.Context, db *pgxpool.Pool, task queueTask) (workedQueue, error) {
	client, err := river.NewClient(riverpgxv5.New(db), &river.Config{Logger: faults()})
	return &riverQueue{db: db, client: client, task: task, workers: riverMany}, err
}

func (r *riverQueue) send(ctx context.Context, from, n int64) error {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = numbered(from + int64(i))
	}
	_, err := r.client.InsertManyFast(ctx, jobs)
	return err
}

// working is a client that works on jobs.
func (r *riverQueue) working(do func(ctx context.Context, job *river.Job[parcel]) error) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, river.WorkFunc(do)); err != nil {
		return nil, err
	}
	return river.NewClient(riverpgxv5.New(r.db), &river.Config{
		FetchCooldown: riverCooldown, FetchPollInterval: riverPoll, Logger: faults(), Workers: workers,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: r.workers}},
	})
}

// work ends when River has told of each job that its completion is written,
// which it does in the background and in batches.
func (r *riverQueue) work(ctx context.Context, saw func(parcel)) error {
	client, err := r.working(func(_ context.Context, job *river.Job[parcel]) error {
		saw(job.Args)
		return nil
	})
	if err != nil {
		return err
	}
	completed, forget := client.SubscribeConfig(&river.SubscribeConfig{
		Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: int(r.task.Messages) + 1000, // a full one drops
	})
	defer forget()
	if err := client.Start(ctx); err != nil {
		return err
	}
	for n := int64(0); n < r.task.Messages; n++ {
		select {
		case <-completed:
		case <-ctx.Done():
			return fmt.Errorf("%d completed: %w", n, errors.Join(ctx.Err(), r.stop(ctx, client)))
		}
	}
	go func() { _ = r.stop(ctx, client) }() // its end is not what is measured
	return nil
}

func (r *riverQueue) stop(ctx context.Context, client *river.Client[pgx.Tx]) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return client.StopAndCancel(ctx)
}

// once is as River documents a job that is completed in its transaction.
func (r *riverQueue) once(ctx context.Context, saw func(parcel)) error {
	client, err := r.working(func(ctx context.Context, job *river.Job[parcel]) error {
		return pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, insertParcel, job.Args.N); err != nil {
				return err
			}
			if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
				return err
			}
			saw(job.Args)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return r.stop(ctx, client)
}
