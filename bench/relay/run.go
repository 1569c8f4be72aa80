package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/topic"
	"github.com/waybillhq/waybill/event"
	outboxrelay "github.com/waybillhq/waybill/outbox/relay"
)

// Check refuses what cannot be measured, saying why.
func Check(cfg Config) error {
	switch {
	case !slices.Contains(Modes(), cfg.Mode):
		return fmt.Errorf("mode %q: want one of %v", cfg.Mode, Modes())
	case cfg.Mode == Message:
		return errors.New("mode message: not yet, there is nothing that writes events without the table")
	case cfg.Mode == EOS && len(cfg.Engines.Broker.Brokers) == 0:
		return errors.New("mode eos publishes in Kafka transactions, which the broker that would be started here refuses: name a Kafka or Redpanda with WAYBILL_KAFKA_BROKERS")
	}
	return nil
}

// Topics of the steps, behind the measurement's own name.
const (
	warmTopic      = "warm"
	probeTopic     = "probe"
	noMarksTopic   = "nomarks"
	marksTopic     = "marks"
	latencyTopic   = "latency"
	sustainedTopic = "sustained"
)

// run is one measurement under way.
type run struct {
	cfg       Config
	mode      mode
	engines   *engine.Engines
	client    *kgo.Client
	slot      string // of the relay
	beside    *beside
	contracts map[string]*event.Contract
	written   []backlog // to be read back
	res       Result
}

// Run measures. It stops and removes what it started, also if ctx ends.
func Run(ctx context.Context, cfg Config) (_ Result, err error) {
	if err := Check(cfg); err != nil {
		return Result{}, err
	}
	began := time.Now()
	r := &run{cfg: cfg, mode: modes[cfg.Mode], res: Result{
		Name: "relay", Mode: cfg.Mode, Events: cfg.Events, Rate: cfg.Rate, Cores: runtime.NumCPU(),
	}}
	err = r.step(ctx, "start Postgres, broker and registry", 3*time.Minute, func(ctx context.Context) (err error) {
		r.engines, err = engine.Start(ctx, cfg.Engines)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.measure(ctx); err != nil {
		return Result{}, err
	}
	r.res.Postgres = r.engines.Postgres
	r.res.Seconds = time.Since(began).Seconds()
	return r.res, nil
}

func (r *run) measure(ctx context.Context) error {
	for _, s := range []struct {
		name  string
		limit time.Duration
		fn    func(context.Context) error
	}{
		{"make tables and topics", time.Minute, r.prepare},
		{"start the relay for the first time", 2 * time.Minute, r.warmUp},
	} {
		if err := r.step(ctx, s.name, s.limit, s.fn); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{r.drainNoMarks, r.drainMarks, r.live, r.verify} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// warmUp has the first relay make its slot and looks what one costs that has
// nothing to do. The slots beside it are made after its own, so that they need
// not read what came before.
func (r *run) warmUp(ctx context.Context) error {
	return r.with(ctx, marks, func(p *child.Process) error {
		if err := errors.Join(r.reading(ctx, p), r.complete(ctx, p)); err != nil {
			return err
		}
		b, err := r.fill(ctx, r.contracts[warmTopic], 1000)
		if err != nil {
			return err
		}
		r.written = append(r.written, b)
		if err := r.finish(ctx, p, b, marks); err != nil {
			return err
		}
		if rss := idle(ctx, p); rss > 0 {
			r.res.RSS = pointer(rss)
		}
		if r.beside, err = r.newBeside(ctx); err != nil {
			r.note("no limit: %v", err)
		}
		return r.confirmed(ctx, p, b)
	})
}

// idle waits until p uses no processor for half a second, or for three seconds,
// and gives its resident memory in MB.
func idle(ctx context.Context, p *child.Process) float64 {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	u := p.Usage()
	for range 6 {
		before := u.CPU
		for range 5 {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		if u = p.Usage(); u.CPU == before {
			break
		}
	}
	return u.RSS
}

// drainNoMarks first looks whether the relay can do without marks.
func (r *run) drainNoMarks(ctx context.Context) error {
	switch r.cfg.Mode {
	case Poll:
		r.note("nothing without marks: a relay that polls knows by them what to publish")
		return nil
	case Message:
		r.note("messages are never marked: the figures are those without")
		return nil
	case EOS:
		r.note("nothing without marks: markers of transactions in the topic hide how many records it holds")
		return nil
	}
	can := false
	err := r.step(ctx, "look whether the relay can do without marks", 2*time.Minute, func(ctx context.Context) (err error) {
		can, err = r.probe(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if !can {
		r.note("nothing without marks: this relay always writes them")
		return nil
	}
	d, limit, err := r.pair(ctx, noMarksTopic, noMarks)
	r.res.PerSecondNoMarks, r.res.LimitNoMarks = &d.perSecond, limit
	if limit != nil {
		r.res.RatioNoMarks = pointer(d.perSecond / *limit)
	}
	return err
}

// probe tells whether a relay that is to leave out marks does.
func (r *run) probe(ctx context.Context) (can bool, err error) {
	if err := r.clear(ctx); err != nil {
		return false, err
	}
	err = r.with(ctx, noMarks, func(p *child.Process) error {
		if err := r.reading(ctx, p); err != nil {
			return err
		}
		b, err := r.fill(ctx, r.contracts[probeTopic], 100)
		if err != nil {
			return err
		}
		r.written = append(r.written, b)
		return errors.Join(r.allPublished(ctx, p, b), r.confirmed(ctx, p, b))
	})
	if err != nil {
		return false, err
	}
	n, err := r.marked(ctx) // a relay that stopped in order has written what it had to
	return n == 0, err
}

func (r *run) drainMarks(ctx context.Context) error {
	d, limit, err := r.pair(ctx, marksTopic, marks)
	r.res.PerSecond, r.res.Limit = d.perSecond, limit
	if limit != nil {
		r.res.Ratio = pointer(d.perSecond / *limit)
	}
	r.res.CPU, r.res.PerCPUSecond, r.res.Peak = d.cpu, d.perCPU, d.peak
	return err
}

// pair writes a backlog and has it read by pg_recvlogical, by the relay, and
// by pg_recvlogical again: each alone, and a machine that is getting slower or
// faster meanwhile favours neither.
func (r *run) pair(ctx context.Context, name string, m marking) (d drained, limit *float64, err error) {
	var b backlog
	err = r.step(ctx, fmt.Sprintf("write %d events (%s)", r.cfg.Events, name), limitFor(r.cfg.Events), func(ctx context.Context) (err error) {
		if err = errors.Join(r.clear(ctx), r.skip(ctx)); err != nil {
			return err
		}
		if b, err = r.fill(ctx, r.contracts[name], r.cfg.Events); err != nil {
			return err
		}
		r.written = append(r.written, b)
		return r.engines.Checkpoint(ctx)
	})
	if err != nil {
		return d, nil, err
	}
	var theirs time.Duration
	read := func(i int) error {
		if r.beside == nil {
			return nil
		}
		return r.step(ctx, "read the WAL with pg_recvlogical", limitFor(r.cfg.Events), func(ctx context.Context) error {
			took, err := r.beside.read(ctx, r.beside.slots[i], b.end)
			theirs += took
			return err
		})
	}
	ours := func() error {
		return r.step(ctx, fmt.Sprintf("drain %d events (%s)", b.events, name), limitFor(b.events), func(ctx context.Context) (err error) {
			d, err = r.drain(ctx, b, m)
			return err
		})
	}
	for _, fn := range []func() error{func() error { return read(0) }, ours, func() error { return read(1) }} {
		if err := fn(); err != nil {
			return d, nil, err
		}
	}
	if theirs > 0 {
		limit = pointer(2 * float64(b.events) / theirs.Seconds())
	}
	return d, limit, nil
}

// verify reads every topic back.
func (r *run) verify(ctx context.Context) error {
	for _, b := range r.written {
		err := r.step(ctx, fmt.Sprintf("read back %d events", b.events), limitFor(b.events), func(ctx context.Context) error {
			t := topic.NewTally(keys)
			err := topic.Read(ctx, r.engines.Broker, b.topic, func(rec *kgo.Record) error {
				_, _, err := t.Saw(rec)
				return err
			})
			r.count(t, b.events-t.Seen)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) count(t *topic.Tally, lost int64) {
	r.res.Lost += lost
	r.res.Reordered += t.Reordered
	r.res.Duplicates += t.Duplicates
}

func (r *run) note(format string, args ...any) {
	r.res.Notes = append(r.res.Notes, fmt.Sprintf(format, args...))
}

// close leaves a broker of somebody's as it was found.
func (r *run) close(ctx context.Context) (err error) {
	if r.client != nil {
		if len(r.cfg.Engines.Broker.Brokers) > 0 {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
			defer cancel()
			var names []string
			for _, c := range r.contracts {
				names = append(names, c.Topic)
			}
			_, err = kadm.NewClient(r.client).DeleteTopics(ctx, names...)
		}
		r.client.Close()
	}
	return errors.Join(err, r.engines.Close(ctx))
}

// slotOf is the slot a relay of this database reads.
func slotOf(e *engine.Engines) string { return outboxrelay.SlotName(e.DB.Config().ConnConfig.Database) }
