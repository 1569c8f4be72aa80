package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/child"
)

// phase is a part of a round.
type phase string

const (
	phaseSend phase = "send"
	phaseWork phase = "work" // at least once, to do nothing
	phaseOnce phase = "once" // one row each, committed with the message's end
)

// queueTask is what a process is to do.
type queueTask struct {
	Phase    phase
	Messages int64
	Batch    int
	Workers  int
}

// spent is what it took.
type spent struct {
	Seconds     float64
	CPU, Server *float64
	Done, Twice int64
}

// parcel is a message's body, JSON of some 220 bytes.
type parcel struct {
	N    int64  `json:"n"`
	Note string `json:"note"`
}

// insertParcel is the effect of working on one.
const insertParcel = `INSERT INTO effect (n) VALUES ($1)`

// workedQueue is a queue as a process sees it.
type workedQueue interface {
	// send puts n messages in, the first of them number from.
	send(ctx context.Context, from, n int64) error
	// work has messages worked on until enough are settled, and calls saw with
	// each before it is.
	work(ctx context.Context, saw func(parcel)) error
	// once has the effect of each in one transaction with the message's end,
	// until ctx ends, and calls saw with each once it looks done.
	once(ctx context.Context, saw func(parcel)) error
}

// playQueue does a task and prints what it took.
func playQueue(ctx context.Context, arg string, out io.Writer,
	open func(context.Context, *pgxpool.Pool, queueTask) (workedQueue, error),
) error {
	var task queueTask
	if err := json.Unmarshal([]byte(arg), &task); err != nil {
		return err
	}
	db, err := opened(ctx, task.Workers+4)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	q, err := open(ctx, db, task)
	if err != nil {
		return err
	}
	m := &meter{db: db, task: task, times: make([]atomic.Int32, task.Messages)}
	switch task.Phase {
	case phaseSend:
		err = m.send(ctx, q)
	case phaseWork:
		err = m.work(ctx, q)
	case phaseOnce:
		err = m.once(ctx, q)
	default:
		err = fmt.Errorf("no phase %s", task.Phase)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(m.res)
}

// meter measures the process that it is in.
type meter struct {
	db    *pgxpool.Pool
	task  queueTask
	times []atomic.Int32 // how often each message came
	done  atomic.Int64   // different ones

	began       time.Time
	cpu, server *float64
	res         spent
}

func (m *meter) start(ctx context.Context) (err error) {
	m.server, err = serverCPU(ctx, m.db)
	if u := child.UsageOf(os.Getpid()); u.Known {
		m.cpu = &u.CPU
	}
	m.began = time.Now()
	return err
}

func (m *meter) stop(ctx context.Context) error {
	m.res.Seconds = time.Since(m.began).Seconds()
	if u := child.UsageOf(os.Getpid()); u.Known && m.cpu != nil {
		m.res.CPU = less(&u.CPU, m.cpu)
	}
	server, err := serverCPU(ctx, m.db)
	m.res.Server = less(server, m.server)
	return err
}

func less(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	v := *a - *b
	return &v
}

func (m *meter) send(ctx context.Context, q workedQueue) error {
	if err := m.start(ctx); err != nil {
		return err
	}
	var next atomic.Int64
	g, sending := errgroup.WithContext(ctx)
	batch := int64(m.task.Batch)
	for range m.task.Workers {
		g.Go(func() error {
			for from := next.Add(batch) - batch; from < m.task.Messages; from = next.Add(batch) - batch {
				if err := q.send(sending, from, min(batch, m.task.Messages-from)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	m.res.Done = m.task.Messages
	return m.stop(ctx)
}

// saw counts a message.
func (m *meter) saw(p parcel) {
	if p.N < 0 || p.N >= m.task.Messages {
		return // nobody's: those of ours that lack are lost
	}
	if m.times[p.N].Add(1) == 1 {
		m.done.Add(1)
	}
}

func (m *meter) all() bool { return m.done.Load() >= m.task.Messages }

func (m *meter) work(ctx context.Context, q workedQueue) error {
	if err := m.start(ctx); err != nil {
		return err
	}
	if err := q.work(ctx, m.saw); err != nil {
		return err
	}
	if err := m.stop(ctx); err != nil {
		return err
	}
	m.res.Done = m.done.Load()
	for i := range m.times {
		m.res.Twice += max(int64(m.times[i].Load())-1, 0)
	}
	return nil
}

// once ends when the effects of all are committed, as the table has it.
func (m *meter) once(ctx context.Context, q workedQueue) error {
	if err := m.start(ctx); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return q.once(working, m.saw) })
	err := m.committed(ctx)
	if err == nil {
		err = m.stop(ctx)
	}
	stop()
	if werr := g.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return err
	}
	return m.db.QueryRow(ctx, `SELECT count(DISTINCT n), count(*) - count(DISTINCT n) FROM effect`).Scan(&m.res.Done, &m.res.Twice)
}

func (m *meter) committed(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if m.all() {
			var n int64
			err := m.db.QueryRow(ctx, `SELECT count(*) FROM effect`).Scan(&n)
			if err != nil || n >= m.task.Messages {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d worked on: %w", m.done.Load(), m.task.Messages, ctx.Err())
		}
	}
}
