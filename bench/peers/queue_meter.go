package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/child"
)

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
