// Package queue measures point-to-point queues: messages sent, and received and
// acknowledged, a second, beside a bare table that is emptied by the plainest
// loop there is.
package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/stat"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/queue"
)

// Config of a measurement.
type Config struct {
	Messages int
	Batch    int  // messages of one send, receive and ack
	Workers  int  // connections at a time
	Body     int  // bytes
	Held     bool // a transaction elsewhere stays open meanwhile
	Engines  engine.Config
	Progress func(step string)
}

// Result of a measurement.
type Result struct {
	Name        string  `json:"name"`
	Messages    int     `json:"events"`
	Batch       int     `json:"batch"`
	Workers     int     `json:"workers"`
	Body        int     `json:"body_bytes"`
	Held        bool    `json:"held_transaction"`
	Sent        float64 `json:"send_events_per_s"`
	PerSecond   float64 `json:"events_per_s"` // received and acknowledged
	SentLimit   float64 `json:"limit_send_events_per_s"`
	Limit       float64 `json:"limit_events_per_s"`
	Ratio       float64 `json:"ratio"`  // of the two rates of receiving
	P50         float64 `json:"p50_ms"` // of one receive and its ack
	P99         float64 `json:"p99_ms"`
	Lost        int     `json:"lost"`
	Duplicates  int     `json:"duplicates"`
	TableMB     float64 `json:"table_mb"`         // with its indexes, at the end
	SlowdownEnd float64 `json:"last_tenth_ratio"` // rate of the last tenth of receiving to that of the first
	Postgres    string  `json:"postgres"`
	Cores       int     `json:"cores"`
}

// Run measures, and removes what it made.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	cfg.Progress("start Postgres")
	e, err := engine.Start(ctx, cfg.Engines)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	if err := pg.Migrate(ctx, e.DB, queue.Migration()); err != nil {
		return Result{}, err
	}
	db, err := pg.Open(ctx, e.DSN, pg.Config{MaxConns: int32(cfg.Workers + 4), IdleInTransaction: -1})
	if err != nil {
		return Result{}, err
	}
	defer db.Close()
	res = Result{
		Name: "queue", Messages: cfg.Messages, Batch: cfg.Batch, Workers: cfg.Workers, Body: cfg.Body, Held: cfg.Held,
		Postgres: e.Postgres, Cores: runtime.NumCPU(),
	}
	r := &run{cfg: cfg, db: db, res: &res}
	steps := []func(context.Context) error{r.bare, func(ctx context.Context) error { return r.queue(ctx, e) }}
	for _, step := range steps {
		if err := r.beside(ctx, step); err != nil {
			return Result{}, err
		}
	}
	res.Ratio = res.PerSecond / res.Limit
	return res, nil
}

type run struct {
	cfg Config
	db  *pgxpool.Pool
	res *Result
}

// beside does a step while, if asked for, a transaction holds on to the oldest
// snapshot there is.
func (r *run) beside(ctx context.Context, step func(context.Context) error) error {
	if !r.cfg.Held {
		return step(ctx)
	}
	return pgx.BeginTxFunc(ctx, r.db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT txid_current()`); err != nil {
			return err
		}
		return step(ctx)
	})
}

// share runs do on all workers until it has been asked for all batches.
func (r *run) share(ctx context.Context, batches int, do func(ctx context.Context, n int) error) (time.Duration, error) {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, r.cfg.Workers)
	began := time.Now()
	for i := range r.cfg.Workers {
		all.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				n := next.Add(1) - 1
				if n >= int64(batches) {
					return
				}
				errs[i] = do(ctx, int(n))
			}
		})
	}
	all.Wait()
	return time.Since(began), errors.Join(append(errs, ctx.Err())...)
}

func (r *run) batches() int { return (r.cfg.Messages + r.cfg.Batch - 1) / r.cfg.Batch }

func (r *run) perSecond(took time.Duration) float64 {
	return float64(r.batches()*r.cfg.Batch) / took.Seconds()
}

// bare is a table and the plainest loop: lock some rows, delete them, commit.
func (r *run) bare(ctx context.Context) error {
	r.cfg.Progress("a bare table")
	if _, err := r.db.Exec(ctx, `CREATE TABLE bare (id bigserial PRIMARY KEY, body bytea NOT NULL)`); err != nil {
		return err
	}
	bodies := make([][]byte, r.cfg.Batch)
	for i := range bodies {
		bodies[i] = make([]byte, r.cfg.Body)
	}
	took, err := r.share(ctx, r.batches(), func(ctx context.Context, _ int) error {
		_, err := r.db.Exec(ctx, `INSERT INTO bare (body) SELECT unnest($1::bytea[])`, bodies)
		return err
	})
	if err != nil {
		return fmt.Errorf("fill the bare table: %w", err)
	}
	r.res.SentLimit = r.perSecond(took)
	var left atomic.Int64
	left.Store(int64(r.batches() * r.cfg.Batch))
	began := time.Now()
	_, err = r.share(ctx, 1<<30, func(ctx context.Context, _ int) error {
		if left.Load() <= 0 {
			return errDone
		}
		rows, err := r.db.Query(ctx, `DELETE FROM bare WHERE id = ANY (ARRAY(SELECT id FROM bare ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id, body`, r.cfg.Batch)
		if err != nil {
			return err
		}
		n := int64(0)
		for rows.Next() {
			n++
		}
		left.Add(-n)
		return rows.Err()
	})
	r.res.Limit = r.perSecond(time.Since(began))
	return done(err)
}

var errDone = errors.New("done")

func done(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

func (r *run) queue(ctx context.Context, e *engine.Engines) error {
	if err := queue.Declare(ctx, r.db, "", "bench", queue.Settings{MaxLength: int64(2*r.cfg.Messages + 1000), Lease: time.Hour}); err != nil {
		return err
	}
	if err := e.Checkpoint(ctx); err != nil {
		return err
	}
	r.cfg.Progress("send")
	q := queue.New(r.db, queue.Config{Name: "bench"})
	took, err := r.share(ctx, r.batches(), func(ctx context.Context, _ int) error {
		messages := make([]queue.Message, r.cfg.Batch)
		for i := range messages {
			messages[i].Body = make([]byte, r.cfg.Body)
		}
		_, err := q.Send(ctx, r.db, messages...)
		return err
	})
	if err != nil {
		return err
	}
	r.res.Sent = r.perSecond(took)
	r.cfg.Progress("receive")
	if err := r.drain(ctx, q); err != nil {
		return err
	}
	var size int64
	err = r.db.QueryRow(ctx, `SELECT pg_total_relation_size('waybill.queue_messages')`).Scan(&size)
	r.res.TableMB = float64(size) / 1e6
	return err
}

// drain receives and acknowledges until all came.
func (r *run) drain(ctx context.Context, q *queue.Queue) error {
	total := r.batches() * r.cfg.Batch
	var mu sync.Mutex
	seen := make(map[[16]byte]bool, total)
	var waits []time.Duration
	var tenths []time.Time
	began := time.Now()
	_, err := r.share(ctx, 1<<30, func(ctx context.Context, _ int) error {
		asked := time.Now()
		got, err := q.Receive(ctx, queue.ReceiveOptions{Max: r.cfg.Batch, Wait: time.Second})
		if err != nil {
			return err
		}
		receipts := make([]string, len(got))
		for i, d := range got {
			receipts[i] = d.Receipt
		}
		if err := q.Ack(ctx, r.db, receipts...); err != nil {
			return err
		}
		took := time.Since(asked)
		mu.Lock()
		defer mu.Unlock()
		if len(got) > 0 { // who waits in vain at the end waited for nothing
			waits = append(waits, took)
		}
		for _, d := range got {
			if seen[d.ID] {
				r.res.Duplicates++
			}
			seen[d.ID] = true
		}
		for len(tenths) < 10*len(seen)/total {
			tenths = append(tenths, time.Now())
		}
		if len(seen) == total || len(got) == 0 {
			return errDone
		}
		return nil
	})
	if err := done(err); err != nil {
		return err
	}
	r.res.Lost = total - len(seen)
	if len(tenths) == 10 {
		r.res.PerSecond = r.perSecond(tenths[9].Sub(began))
		r.res.SlowdownEnd = tenths[0].Sub(began).Seconds() / tenths[9].Sub(tenths[8]).Seconds()
	}
	slices.Sort(waits)
	r.res.P50, r.res.P99 = stat.Quantile(waits, 0.5), stat.Quantile(waits, 0.99)
	return nil
}
