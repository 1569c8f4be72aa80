package consume

import (
	"context"
	"log/slog"
	"time"

	"github.com/waybillhq/waybill/lag"
)

// SetWorkers implements lag.Workers.
func (l *load) SetWorkers(n int) {
	l.workers.Store(int64(n))
	l.group.SetWorkers(n)
}

// scaleBy has somebody set the number of workers: the lag, or a hand.
func (l *load) scaleBy(p *parts) error {
	if l.cfg.ByHand {
		p.run(func(ctx context.Context) error {
			select {
			case <-time.After(l.cfg.At - time.Since(l.began)):
				l.SetWorkers(l.cfg.Max)
				l.notes.add(int64(l.cfg.Max), "by hand")
			case <-ctx.Done():
			}
			<-ctx.Done()
			return nil
		})
		return nil
	}
	s, err := lag.NewAutoscaler(lag.AutoscalerDeps{Workers: l, DB: l.db, Monitor: l.monitor}, lag.AutoscalerConfig{
		Group: l.name(), Logger: slog.New(&l.notes),
		ScalerConfig: lag.ScalerConfig{
			Min: l.cfg.Workers, Max: l.cfg.Max,
			Goal: l.cfg.Burst / 4, Every: max(time.Second, l.cfg.Burst/10), Hold: l.cfg.Burst / 4, Calm: 2,
		},
	})
	if err != nil {
		return err
	}
	p.run(s.Run)
	return nil
}
