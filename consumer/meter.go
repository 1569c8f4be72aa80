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
	lost      outcome = "lost"    // failed, or not begun before its member ended; with AtMostOnce alone
)

// otherType stands for types the group does not handle: strangers choose their
// names, and there is no end of them.
const otherType = "other"

// meter is a group's figures.
type meter struct {
	events    *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	keys      prometheus.Gauge
	outages   prometheus.Counter
	splits    prometheus.Counter
	conflicts prometheus.Counter
	batch     prometheus.Observer
	faults    *prometheus.CounterVec
	fenced    *prometheus.CounterVec
	gaps      *prometheus.CounterVec
	stopped   prometheus.Gauge
	stalled   prometheus.Gauge
	workers   prometheus.Gauge
	target    prometheus.Gauge
	group     string
}

func newMeter(r prometheus.Registerer, group string) *meter {
	m := &meter{
		group: group,
		events: register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_consumer_events_total", Help: "Events by what became of them.",
		}, []string{"group", "type", "outcome"})),
		duration: register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waybill_consumer_handler_seconds", Help: "Time of one transaction: claims, handlers and commit; by the type of its first event.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"group", "type"})),
		faults: register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_consumer_position_faults_total",
			Help: "Partitions whose saved position did not fit the log: recreated, beyond_end or expired.",
		}, []string{"group", "topic", "kind"})),
		fenced: register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_consumer_fenced_total",
			Help: "Partitions given up because another member had taken them over unnoticed.",
		}, []string{"group", "topic"})),
	}
	m.gaps = register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_consumer_gaps_total",
		Help: "Numbers of keys that are missing: held and late count events, missing numbers that were reported, filled events that came after all.",
	}, []string{"group", "topic", "kind"}))
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
	m.splits = register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_consumer_batch_splits_total", Help: "Transactions of several events that failed and were done again in parts.",
	}, []string{"group"})).With(label)
	m.conflicts = register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_consumer_conflicts_total", Help: "Transactions that met another one in the same rows: deadlock or serialization failure.",
	}, []string{"group"})).With(label)
	m.batch = register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "waybill_consumer_batch_events", Help: "Events of one transaction.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 11),
	}, []string{"group"})).With(label)
	m.stopped = register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_consumer_stopped_partitions", Help: "Partitions this member does nothing with until somebody decides how it goes on.",
	}, []string{"group"})).With(label)
	m.stalled = register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_consumer_stalled_partitions", Help: "Partitions with records that make no progress, for no reason known.",
	}, []string{"group"})).With(label)
	m.workers = register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_consumer_workers", Help: "Workers this member has: above the target while some finish what they are at.",
	}, []string{"group"})).With(label)
	m.target = register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_consumer_workers_target", Help: "Workers this member is to have.",
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

func (m *meter) gap(group, topic, kind string, n int64) {
	m.gaps.WithLabelValues(group, topic, kind).Add(float64(n))
}

func (m *meter) took(typ string, since time.Time) {
	m.duration.WithLabelValues(m.group, typ).Observe(time.Since(since).Seconds())
}
