package consume

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/waybillhq/waybill/alert"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/lag"
)

// LoadConfig is a load that a group's first workers cannot carry, and one they
// can afterwards.
type LoadConfig struct {
	Engines engine.Config

	Produce int           // events a second at first
	Calm    int           // and afterwards
	Burst   time.Duration // how long at first
	After   time.Duration // and afterwards; longer if the lag is not gone yet

	Handler time.Duration                  // what each event waits for somebody, before its transaction
	Workers int                            // at first, and at least
	Max     int                            // at most
	Rule    alert.Rule                     // that tells of the lag
	Reading func(*lag.Group) alert.Reading // as the monitor's role has it

	// ByHand has the workers set to Max once, at At, by nobody's lag.
	ByHand bool
	At     time.Duration

	Progress func(step string)
	// Ready hears where the run can be watched from outside; may be nil.
	Ready func(brokers []string, group string)
}

// CheckLoad refuses what cannot be measured, saying why.
func CheckLoad(cfg LoadConfig) error {
	able := float64(cfg.Workers) / cfg.Handler.Seconds()
	switch {
	case cfg.Handler < time.Millisecond || cfg.Handler > 10*time.Second:
		return fmt.Errorf("--handler %s: want 1ms to 10s", cfg.Handler)
	case cfg.Workers < 1 || cfg.Max <= cfg.Workers || cfg.Max > maxLoadWorkers:
		return fmt.Errorf("--from %d --workers %d: want at least 1, more to grow to, and %d at most: each has a connection", cfg.Workers, cfg.Max, maxLoadWorkers)
	case cfg.Produce < 1 || cfg.Produce > 20_000 || cfg.Calm < 1 || cfg.Calm > cfg.Produce:
		return fmt.Errorf("--produce %d --calm %d: want 1 to 20000 events a second, and no more of them in the calm", cfg.Produce, cfg.Calm)
	case float64(cfg.Produce) < able*1.2:
		return fmt.Errorf("--produce %d: %d workers pass %.0f events a second if each takes %s, so that nothing lags: want a fifth more at least", cfg.Produce, cfg.Workers, able, cfg.Handler)
	case cfg.Burst < 5*time.Second || cfg.Burst > time.Hour || cfg.After < time.Second || cfg.After > time.Hour:
		return fmt.Errorf("--burst %s --after %s: want 5s to 1h, and 1s to 1h", cfg.Burst, cfg.After)
	case cfg.ByHand && (cfg.At < time.Second || cfg.At > cfg.Burst+cfg.After):
		return fmt.Errorf("--at %s: want it within the run, which takes %s", cfg.At, cfg.Burst+cfg.After)
	}
	return nil
}

// maxLoadWorkers is what a server of 100 connections leaves.
const maxLoadWorkers = 80

// LoadSample is what the monitor and the group said at a moment. Nil is
// unknown.
type LoadSample struct {
	At      float64  `json:"s"`              // since the load began
	Lag     *int64   `json:"lag"`            // events behind
	Seconds *float64 `json:"seconds_behind"` // the age of the event that is read next
	Workers int64    `json:"workers"`        // there are to be
}

// LoadMark is what happened at a moment.
type LoadMark struct {
	At      float64 `json:"s"`
	Workers int64   `json:"workers,omitempty"` // from then on; 0: it is not about them
	Text    string  `json:"text"`
}

// LoadResult is one run. What did not happen is nil.
type LoadResult struct {
	Name    string       `json:"name"`
	ByHand  bool         `json:"by_hand"`
	Events  int64        `json:"events"`
	Produce int          `json:"produce_per_s"`
	Calm    int          `json:"calm_per_s"`
	Burst   float64      `json:"burst_s"`
	Handler float64      `json:"handler_ms"`
	Rule    string       `json:"alert"`
	MaxLag  int64        `json:"max_lag"`
	MaxAge  float64      `json:"max_seconds_behind"`
	Fired   *float64     `json:"alert_fired_s"`
	Over    *float64     `json:"alert_over_s"`
	Drained *float64     `json:"drained_s"` // the lag is below a second, after its greatest
	Least   int64        `json:"workers_first"`
	Most    int64        `json:"workers_most"`
	Last    int64        `json:"workers_last"`
	Marks   []LoadMark   `json:"marks"`
	Samples []LoadSample `json:"samples"`

	Lost       int64   `json:"lost"`
	Reordered  int64   `json:"reordered"`
	Duplicates int64   `json:"duplicates"`
	Cores      int     `json:"cores"`
	Took       float64 `json:"took_s"`
}

// RunLoad has a load outrun a group, an alert tell of it, and more workers end
// it; then fewer do. The effects are read back from their table.
func RunLoad(ctx context.Context, cfg LoadConfig) (_ LoadResult, err error) {
	if err := CheckLoad(cfg); err != nil {
		return LoadResult{}, err
	}
	began := time.Now()
	l := &load{
		run: &run{cfg: Config{Engines: cfg.Engines, Progress: cfg.Progress}, conns: int32(cfg.Max + loadSpare)},
		cfg: cfg,
	}
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	for _, s := range []struct {
		name  string
		limit time.Duration
		fn    func(context.Context) error
	}{
		{"start Postgres, broker and registry", 3 * time.Minute, l.start},
		{"make tables and the topic", time.Minute, l.prepareLoad},
		{fmt.Sprintf("%d events a second for %s, then %d for %s", cfg.Produce, cfg.Burst, cfg.Calm, cfg.After), cfg.Burst + cfg.After + 10*time.Minute, l.pour},
		{"count what was handled", time.Minute, l.count},
	} {
		if err := l.step(ctx, s.name, s.limit, s.fn); err != nil {
			return LoadResult{}, err
		}
	}
	l.sum(time.Since(began))
	return l.out, nil
}

// sum fills in what the samples and marks come to.
func (l *load) sum(took time.Duration) {
	o := &l.out
	o.Name, o.ByHand, o.Cores, o.Took = "load", l.cfg.ByHand, runtime.NumCPU(), took.Seconds()
	o.Produce, o.Calm, o.Burst = l.cfg.Produce, l.cfg.Calm, l.cfg.Burst.Seconds()
	o.Handler, o.Rule, o.Least = l.cfg.Handler.Seconds()*1000, l.cfg.Rule.Sentence, int64(l.cfg.Workers)
	o.Lost, o.Reordered, o.Duplicates = l.res.Lost, l.res.Reordered, l.res.Duplicates
	o.Marks, o.Fired, o.Over = l.notes.all()
	for _, s := range o.Samples {
		o.Most, o.Last = max(o.Most, s.Workers), s.Workers
		if s.Seconds == nil || s.Lag == nil {
			continue
		}
		o.MaxLag = max(o.MaxLag, *s.Lag)
		switch {
		case *s.Seconds >= o.MaxAge:
			o.MaxAge, o.Drained = *s.Seconds, nil
		case *s.Seconds < 1 && o.Drained == nil:
			at := s.At
			o.Drained = &at
		}
	}
}
