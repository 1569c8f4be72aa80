package relay

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/waybillhq/waybill/pg/wal"
)

type metrics struct {
	events   *prometheus.CounterVec
	byTopic  sync.Map // prometheus.Counter by topic
	latency  prometheus.Histogram
	inFlight prometheus.Gauge
	slotLag  prometheus.Gauge
	failures prometheus.Counter
	stopped  prometheus.Gauge
	rebuilt  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		events: f.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_outbox_published_events_total",
			Help: "Events acknowledged by the broker, by topic.",
		}, []string{"topic"}),
		latency: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "waybill_outbox_publish_duration_seconds",
			Help:    "From a transaction's commit, by the database's clock, to the broker's acknowledgement of its events: one value for each transaction and batch.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 18),
		}),
		inFlight: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_in_flight_events",
			Help: "Events read from the WAL and not yet marked as published.",
		}),
		slotLag: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_slot_lag_bytes",
			Help: "WAL between what the relay confirmed and what the server has written, a second ago at most.",
		}),
		failures: f.NewCounter(prometheus.CounterOpts{
			Name: "waybill_outbox_relay_failures_total",
			Help: "Times the relay stopped on an error and started again.",
		}),
		stopped: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_stopped_partitions",
			Help: "Partitions that wait for an event the broker refuses.",
		}),
		rebuilt: f.NewCounter(prometheus.CounterOpts{
			Name: "waybill_outbox_slot_rebuilds_total",
			Help: "Times the replication slot was gone or lost and was made anew.",
		}),
	}
}

// published counts a batch.
func (m *metrics) published(b *batch, l *ledger) {
	topic := b.Partition.Topic.Name
	c, ok := m.byTopic.Load(topic)
	if !ok {
		c, _ = m.byTopic.LoadOrStore(topic, m.events.WithLabelValues(topic))
	}
	c.(prometheus.Counter).Add(float64(len(b.Tags)))
	now := time.Now()
	for i := range b.Tags {
		if i > 0 && b.Tags[i].commit == b.Tags[i-1].commit {
			continue
		}
		if at := l.committed(&b.Tags[i]); !at.IsZero() {
			m.latency.Observe(now.Sub(at).Seconds())
		}
	}
}

func (m *metrics) position(end, confirmed wal.LSN) {
	if confirmed != 0 && end > confirmed {
		m.slotLag.Set(float64(end - confirmed))
	} else {
		m.slotLag.Set(0)
	}
}
