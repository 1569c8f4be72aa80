package consume

import (
	"context"
	"log/slog"
	"time"

	"github.com/waybillhq/waybill/alert"
	"github.com/waybillhq/waybill/consumer"
)

// alerts holds the rule against the group, as the monitor's role does.
func (l *load) alerts() *alert.Engine {
	return alert.New(alert.Deps{DB: l.db, Read: func(context.Context) ([]alert.Reading, error) {
		var out []alert.Reading
		s := l.monitor.Latest()
		for i := range s.Groups {
			out = append(out, l.cfg.Reading(&s.Groups[i]))
		}
		return out, nil
	}}, alert.Config{
		Rules: []alert.Rule{l.cfg.Rule}, Sinks: []alert.Sink{&l.notes}, Every: lookEvery, Look: lookEvery / 2,
		Logger: slog.New(slog.DiscardHandler),
	})
}

// savedWarm tells whether the group has saved that it passed them.
func (l *load) savedWarm(ctx context.Context) (bool, error) {
	at, err := consumer.Partitions(ctx, l.db, l.name())
	passed := int64(0)
	for _, p := range at {
		if p.Next != nil {
			passed += *p.Next
		}
	}
	return passed >= warmEvents, err
}

// caughtUp tells whether the monitor sees no lag.
func (l *load) caughtUp() bool {
	s := l.monitor.Latest()
	if s == nil {
		return false
	}
	g := s.Group(l.name())
	return g != nil && g.Lag != nil && *g.Lag == 0
}

// quiet is the end: all is handled, the monitor saw it, and no alert is left.
func (l *load) quiet() bool {
	return l.handled.Load() >= l.published.Load() && l.caughtUp() && !l.notes.firing()
}

// sample notes what is known, again and again until ctx ends.
func (l *load) sample(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true // with how it ended
		}
		now := LoadSample{At: time.Since(l.began).Seconds(), Workers: l.workers.Load()}
		if g := l.monitor.Latest().Group(l.name()); g != nil {
			now.Lag, now.Seconds = g.Lag, g.Seconds
		}
		l.out.Samples = append(l.out.Samples, now)
	}
}
