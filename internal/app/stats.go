package app

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/notify"
	"github.com/waybillhq/waybill/push"
)

// timed measures from an event's making to its hand-over to the browsers'
// connections.
func (a *App) timed(route push.Route, delays *api.Delays) push.Route {
	seen := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "waybill_event_to_push_duration_seconds",
		Help:    "From the making of an event to its hand-over to open connections.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	})
	a.metrics.MustRegister(seen)
	return func(ctx context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
		// What is read again after a restart was seen long ago.
		if env.Time.After(a.started) {
			took := time.Since(env.Time)
			seen.Observe(took.Seconds())
			if tellsOfRoom(rec, env) {
				delays.Add(took)
			}
		}
		return route(ctx, rec, env)
	}
}

// tellsOfRoom leaves out what would keep every merchant at what is assured
// though there is room. A position's time is that of the courier's device, which
// may be seconds old or wrong. What a module made shares its transaction with
// others, and those made first in it wait for its end: only what a request made
// counts, whose causation is the request itself.
func tellsOfRoom(rec *kgo.Record, env *event.Envelope) bool {
	return env.CausationID != "" && env.CausationID == env.CorrelationID && !slices.Contains(notify.LatestTopics(), rec.Topic)
}

// Stats is how things go, for the status line.
type Stats struct {
	Published float64       // events acknowledged by the broker since the start
	SeenCount uint64        // events handed to the browsers' connections
	SeenMean  time.Duration // from making to hand-over, since the start
	Lag       *int64        // records behind, over all groups; nil: unknown
}

// Stats reads the program's own metrics and asks the broker for lag.
func (a *App) Stats(ctx context.Context, cl *kgo.Client) Stats {
	var s Stats
	families, _ := a.metrics.Gather() // what could be gathered is shown
	for _, f := range families {
		switch f.GetName() {
		case "waybill_outbox_published_events_total":
			for _, m := range f.GetMetric() {
				s.Published += m.GetCounter().GetValue()
			}
		case "waybill_event_to_push_duration_seconds":
			s.seen(f.GetMetric())
		}
	}
	s.Lag = totalLag(ctx, cl)
	return s
}

func (s *Stats) seen(ms []*dto.Metric) {
	for _, m := range ms {
		h := m.GetHistogram()
		s.SeenCount = h.GetSampleCount()
		if s.SeenCount > 0 {
			s.SeenMean = time.Duration(h.GetSampleSum() / float64(s.SeenCount) * float64(time.Second))
		}
	}
}

// totalLag is nil as soon as one partition's lag is unknown.
func totalLag(ctx context.Context, cl *kgo.Client) *int64 {
	lags, err := broker.Lag(ctx, cl)
	if err != nil {
		return nil
	}
	var sum int64
	for _, l := range lags {
		switch {
		case l.Lag != nil:
			sum += *l.Lag
		case l.Start != nil && l.End != nil && *l.Start == *l.End: // nothing to commit yet
		default:
			return nil
		}
	}
	return &sum
}
