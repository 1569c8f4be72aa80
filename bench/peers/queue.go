package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/bench/engine"
)

type queueConfig struct {
	Program  string
	Messages int64
	Batch    int
	Workers  int
	Rounds   int
	Progress func(step string)
}

// queuePeer is one queue in Postgres.
type queuePeer struct {
	name, settings string
	part           string
	prepare        func(ctx context.Context, db *pgxpool.Pool, cfg queueConfig) error
	clear          string // SQL
}

// queueComparison is of queues in the same Postgres, one process after the
// other.
type queueComparison struct {
	Name     string        `json:"name"`
	Messages int64         `json:"messages"`
	Batch    int           `json:"batch"`
	Workers  int           `json:"workers"`
	Rounds   int           `json:"rounds"`
	Postgres string        `json:"postgres"`
	Cores    int           `json:"cores"`
	Peers    []queueResult `json:"peers"` // Waybill first
}

type queueResult struct {
	Name     string      `json:"name"`
	Settings string      `json:"settings"`
	Send     phaseResult `json:"send"`
	Work     phaseResult `json:"work"`
	Once     phaseResult `json:"once"`
	Lost     int64       `json:"lost"`
	Twice    int64       `json:"duplicates"`
}

// phaseResult is the medians of one phase; processor seconds are for a million
// messages.
type phaseResult struct {
	PerSecond float64   `json:"messages_per_s"`
	Rates     []float64 `json:"rates"`
	CPU       *float64  `json:"cpu_s_per_million"`
	Server    *float64  `json:"postgres_cpu_s_per_million"`
	Faster    *float64  `json:"times_faster"` // Waybill over this one, 1 for itself

	cpu, server []*float64
}

func runQueue(ctx context.Context, cfg queueConfig) (res queueComparison, err error) {
	cfg.Progress("queue: start Postgres")
	e, err := engine.Start(ctx, engine.Config{Program: cfg.Program})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	q := &queueing{queueConfig: cfg, engines: e, peers: []queuePeer{waybillQueuePeer(), riverPeer(), riverManyPeer()}}
	if err := within(ctx, time.Minute, "make tables", q.prepare); err != nil {
		return res, err
	}
	res = queueComparison{
		Name: "queue", Messages: cfg.Messages, Batch: cfg.Batch, Workers: cfg.Workers, Rounds: cfg.Rounds,
		Postgres: e.Postgres, Cores: runtime.NumCPU(),
	}
	for _, p := range q.peers {
		res.Peers = append(res.Peers, queueResult{Name: p.name, Settings: p.settings})
	}
	err = alternate(cfg.Rounds, len(q.peers), func(round, i int) error {
		p := q.peers[i]
		cfg.Progress(fmt.Sprintf("queue: %s, round %d of %d", p.name, round+1, cfg.Rounds))
		limit := 2*time.Minute + time.Duration(cfg.Messages)*10*time.Millisecond
		return within(ctx, limit, p.name, func(ctx context.Context) error { return q.round(ctx, p, &res.Peers[i]) })
	})
	res.compare()
	return res, err
}

// queueing is a comparison under way.
type queueing struct {
	queueConfig
	engines *engine.Engines
	peers   []queuePeer
}

func (q *queueing) prepare(ctx context.Context) error {
	if _, err := q.engines.DB.Exec(ctx, `CREATE TABLE effect (n bigint NOT NULL)`); err != nil {
		return err
	}
	for _, p := range q.peers {
		if p.prepare == nil {
			continue
		}
		if err := p.prepare(ctx, q.engines.DB, q.queueConfig); err != nil {
			return err
		}
	}
	return nil
}

// round sends messages and works on them, twice: with workers that do nothing,
// and with workers whose effect is committed with the message's end.
func (q *queueing) round(ctx context.Context, p queuePeer, res *queueResult) error {
	for _, part := range []struct {
		messages int64
		work     phase
		sent     bool // its sending counts
	}{{q.Messages, phaseWork, true}, {q.once(), phaseOnce, false}} {
		if _, err := q.engines.DB.Exec(ctx, `TRUNCATE effect;`+p.clear); err != nil {
			return err
		}
		for _, step := range []phase{phaseSend, part.work} {
			if err := q.engines.Checkpoint(ctx); err != nil {
				return err
			}
			got, err := q.play(ctx, p, step, part.messages)
			if err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
			res.Lost += part.messages - got.Done
			res.Twice += got.Twice
			switch {
			case step == phaseWork:
				res.Work.add(got, part.messages)
			case step == phaseOnce:
				res.Once.add(got, part.messages)
			case part.sent:
				res.Send.add(got, part.messages)
			}
		}
	}
	return nil
}

// once is how many messages have an effect: a transaction for each is slow, and
// steady.
func (c queueConfig) once() int64 { return (c.Messages + 4) / 5 }

// play has this program play one phase in a process of its own, which measures
// itself.
func (q *queueing) play(ctx context.Context, p queuePeer, step phase, messages int64) (got spent, err error) {
	self, err := os.Executable()
	if err != nil {
		return got, err
	}
	task, err := json.Marshal(queueTask{Phase: step, Messages: messages, Batch: q.Batch, Workers: q.Workers})
	if err != nil {
		return got, err
	}
	cmd := exec.CommandContext(ctx, self, playCommand, p.part, string(task)) //nolint:gosec // ourselves
	cmd.Env = append(os.Environ(), q.engines.Env()...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours to pass on, once
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return got, fmt.Errorf("%w: %s", err, said.Bytes())
	}
	return got, json.Unmarshal(out.Bytes(), &got)
}

func (r *phaseResult) add(s spent, n int64) {
	r.Rates = append(r.Rates, float64(n)/s.Seconds)
	r.cpu, r.server = append(r.cpu, perMillion(new(float64), s.CPU, n)), append(r.server, perMillion(new(float64), s.Server, n))
	r.PerSecond, r.CPU, r.Server = median(r.Rates), medianKnown(r.cpu), medianKnown(r.server)
}

func (c *queueComparison) compare() {
	ours := c.Peers[0]
	for i := range c.Peers {
		p := &c.Peers[i]
		p.Send.Faster = over(&ours.Send.PerSecond, &p.Send.PerSecond)
		p.Work.Faster = over(&ours.Work.PerSecond, &p.Work.PerSecond)
		p.Once.Faster = over(&ours.Once.PerSecond, &p.Once.PerSecond)
	}
}
