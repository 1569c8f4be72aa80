package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
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
