package consumer

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// outcome is what became of an event.
type outcome string

const (
	done      outcome = "done"
	duplicate outcome = "duplicate" // handled before
	parked    outcome = "parked"
	dead      outcome = "dead"    // given up, waits for an operator
	dropped   outcome = "dropped" // given up for good, by its policy
	skipped   outcome = "skipped" // nobody handles its type
)

// otherType stands for types the group does not handle: strangers choose their
// names, and there is no end of them.
const otherType = "other"

// meter is a group's figures.
type meter struct {
	events   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	keys     prometheus.Gauge
	outages  prometheus.Counter
	faults   *prometheus.CounterVec
	group    string
}

func newMeter(r prometheus.Registerer, group string) *meter {
	m := &meter{
		group: group,
		events: register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_consumer_events_total", Help: "Events by what became of them.",
		}, []string{"group", "type", "outcome"})),
		duration: register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waybill_consumer_handler_seconds", Help: "Time of one attempt: claim, handler and commit.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"group", "type"})),
		faults: register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_consumer_position_faults_total",
			Help: "Partitions whose saved position did not fit the log: recreated, beyond_end or expired.",
		}, []string{"group", "topic", "kind"})),
	}
	label := prometheus.Labels{"group": group}
	m.inFlight = register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_consumer_in_flight", Help: "Records held in memory.",
	}, []string{"group"})).With(label)
	m.keys = register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_consumer_parked_keys", Help: "Keys this member holds back behind a failed event.",
	}, []string{"group"})).With(label)
	m.outages = register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_consumer_infrastructure_errors_total", Help: "Attempts that failed for want of infrastructure.",
	}, []string{"group"})).With(label)
	return m
}

// register lets the groups of one process share their vectors.
func register[C prometheus.Collector](r prometheus.Registerer, c C) C {
	if r == nil {
		return c
	}
	var there prometheus.AlreadyRegisteredError
	if err := r.Register(c); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	return c
}

func (m *meter) count(typ string, o outcome, n int) {
	m.events.WithLabelValues(m.group, typ, string(o)).Add(float64(n))
}

func (m *meter) took(typ string, since time.Time) {
	m.duration.WithLabelValues(m.group, typ).Observe(time.Since(since).Seconds())
}
