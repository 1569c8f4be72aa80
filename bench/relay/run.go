package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/bench/engine"
	outboxrelay "github.com/waybillhq/waybill/outbox/relay"
)

// Check refuses what cannot be measured, saying why.
func Check(cfg Config) error {
	switch {
	case !slices.Contains(Modes(), cfg.Mode):
		return fmt.Errorf("mode %q: want one of %v", cfg.Mode, Modes())
	case cfg.Mode == EOS && len(cfg.Engines.Broker.Brokers) == 0:
		return errors.New("mode eos publishes in Kafka transactions, which the broker that would be started here refuses: name a Kafka or Redpanda with WAYBILL_KAFKA_BROKERS")
	}
	return nil
}

// Topics of the steps, behind the measurement's own name.
const (
	warmTopic      = "warm"
	noMarksTopic   = "nomarks"
	marksTopic     = "marks"
	latencyTopic   = "latency"
	sustainedTopic = "sustained"
)

// run is one measurement under way.
type run struct {
	cfg     Config
	mode    mode
	engines *engine.Engines
	outbox  *Outbox
	client  *kgo.Client
	slot    string // of the relay
	beside  *beside
	written []Backlog // to be read back
	res     Result
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

// prepare makes the outbox and its topics.
func (r *run) prepare(ctx context.Context) (err error) {
	r.slot = slotOf(r.engines)
	r.outbox, err = NewOutbox(ctx, r.engines, r.cfg.Mode,
		warmTopic, noMarksTopic, marksTopic, latencyTopic, sustainedTopic)
	if err != nil {
		return err
	}
	if r.mode.exact {
		topic, err := outboxrelay.PositionTopic(ctx, r.engines.DB, r.slot)
		if err != nil {
			return err
		}
		r.engines.Delete(topic)
	}
	r.client, err = r.engines.Broker.Client()
	return err
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

func (r *run) note(format string, args ...any) {
	r.res.Notes = append(r.res.Notes, fmt.Sprintf(format, args...))
}

func (r *run) close(ctx context.Context) error {
	if r.client != nil {
		r.client.Close()
	}
	return r.engines.Close(ctx)
}

// slotOf is the slot a relay of this database reads.
func slotOf(e *engine.Engines) string { return outboxrelay.SlotName(e.DB.Config().ConnConfig.Database) }
