package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

type consumeConfig struct {
	Program  string
	Events   int64
	Rounds   int
	Progress func(step string)
}

// consumePeer is one way from a topic to effects in Postgres that happen once.
type consumePeer struct {
	name, settings string // for the table's reader
	part           string // the process that handles, see play
	tables, clear  string // SQL of its own tables
}

// consumeComparison is of handlers with the same effect on the same topic, one
// process after the other.
type consumeComparison struct {
	Name     string          `json:"name"`
	Events   int64           `json:"events"`
	Rounds   int             `json:"rounds"`
	Postgres string          `json:"postgres"`
	Cores    int             `json:"cores"`
	Peers    []consumeResult `json:"peers"` // Waybill first
}

// consumeResult is one peer's. Rates and costs are medians of the rounds,
// counts are over all of them and the run that is killed.
type consumeResult struct {
	Name     string `json:"name"`
	Settings string `json:"settings"`
	// From the last moment without any effect until all were committed.
	PerSecond float64   `json:"events_per_s"`
	Rates     []float64 `json:"rates"`
	// Processor seconds for a million events, over the same time.
	CPU        *float64 `json:"cpu_s_per_million"`
	Server     *float64 `json:"postgres_cpu_s_per_million"`
	Peak       *float64 `json:"rss_peak_mb"`
	Lost       int64    `json:"lost"`
	Reorder    int64    `json:"reordered"`
	Twice      int64    `json:"duplicates"`
	Killed     killed   `json:"killed"`
	Faster     *float64 `json:"times_faster"`           // Waybill over this one, 1 for itself
	LessCPU    *float64 `json:"times_events_per_cpu_s"` // of its own process
	LessServer *float64 `json:"times_events_per_postgres_cpu_s"`
}

// killed is what came of a process that is killed with a third of the effects
// made, and of the one that takes over.
type killed struct {
	// At is how many effects were committed when the first was gone.
	At int64 `json:"effects_before"`
	// Pause is from the start of the next process to its first effect.
	Pause float64 `json:"pause_s"`
}

func runConsume(ctx context.Context, cfg consumeConfig) (res consumeComparison, err error) {
	cfg.Progress("consume: start Postgres, broker and registry")
	e, err := engine.Start(ctx, engine.Config{Program: cfg.Program})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	c := &consuming{consumeConfig: cfg, engines: e, peers: []consumePeer{waybillConsumer(), watermillConsumer()}}
	if err := within(ctx, c.patience(), "make tables and the topic", c.prepare); err != nil {
		return res, err
	}
	defer c.admin.Close()
	all, err := c.all(ctx)
	if err != nil {
		return res, err
	}
	res = consumeComparison{Name: "consume", Events: cfg.Events, Rounds: cfg.Rounds, Postgres: e.Postgres, Cores: runtime.NumCPU()}
	for i := range all {
		res.Peers = append(res.Peers, all[i].result())
	}
	res.compare()
	return res, nil
}

// all runs every round of every peer, and then kills each once.
func (c *consuming) all(ctx context.Context) ([]tries, error) {
	all := make([]tries, len(c.peers))
	for i, p := range c.peers {
		all[i].res = consumeResult{Name: p.name, Settings: p.settings}
	}
	err := alternate(c.Rounds, len(c.peers), func(round, i int) error {
		p := c.peers[i]
		c.Progress(fmt.Sprintf("consume: %s, round %d of %d", p.name, round+1, c.Rounds))
		return within(ctx, c.patience(), p.name, func(ctx context.Context) error { return c.round(ctx, p, round, &all[i]) })
	})
	if err != nil {
		return nil, err
	}
	for i, p := range c.peers {
		c.Progress(fmt.Sprintf("consume: %s, killed", p.name))
		err := within(ctx, c.patience(), p.name+", killed", func(ctx context.Context) error { return c.kill(ctx, p, &all[i]) })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// patience bounds a run: of 100 events a second, and what a group takes to be
// rid of a dead member.
func (c *consuming) patience() time.Duration {
	return 2*time.Minute + time.Duration(c.Events)*10*time.Millisecond
}

// prepare makes what both need, and publishes the events once: each run is a
// group of its own that reads them from the beginning.
func (c *consuming) prepare(ctx context.Context) error {
	e := c.engines
	if err := pg.Migrate(ctx, e.DB, incident.Migration(), consumer.Migrations()); err != nil {
		return err
	}
	sql := `CREATE TABLE effect (id bigint GENERATED ALWAYS AS IDENTITY, account text NOT NULL, n bigint NOT NULL)`
	for _, p := range c.peers {
		sql += ";" + p.tables
	}
	if _, err := e.DB.Exec(ctx, sql); err != nil {
		return err
	}
	if err := e.Declare(ctx, consumeTopic); err != nil {
		return err
	}
	schemas, err := registry.New(e.RegistryURL, registry.Config{})
	if err != nil {
		return err
	}
	defer schemas.Close()
	ids, err := schemas.Register(ctx, sr.CompatNone.String(), contract)
	if err != nil {
		return err
	}
	if err := publish(ctx, e, ids[contract.Fingerprint], c.Events); err != nil {
		return err
	}
	cl, err := e.Broker.Client()
	if err != nil {
		return err
	}
	c.admin = kadm.NewClient(cl)
	return nil
}

func (c *consumeComparison) compare() {
	ours := c.Peers[0]
	for i := range c.Peers {
		p := &c.Peers[i]
		p.Faster = over(&ours.PerSecond, &p.PerSecond)
		p.LessCPU = over(p.CPU, ours.CPU)
		p.LessServer = over(p.Server, ours.Server)
	}
}
