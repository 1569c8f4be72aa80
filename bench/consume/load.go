package consume

import (
	"context"
	"errors"
	"fmt"
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
