package relay

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/waybillhq/waybill/pg/wal"
)

type metrics struct {
	events   *prometheus.CounterVec
	latency  prometheus.Histogram
	inFlight prometheus.Gauge
	slotLag  prometheus.Gauge
	failures prometheus.Counter
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
			Help:    "From an event's commit, by the database's clock, to the broker's acknowledgement.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 18),
		}),
		inFlight: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_in_flight_events",
			Help: "Events read from the WAL and not yet marked as published.",
		}),
		slotLag: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_slot_lag_bytes",
			Help: "WAL between what the relay confirmed and what the server has read for it, at the last keepalive.",
		}),
		failures: f.NewCounter(prometheus.CounterOpts{
			Name: "waybill_outbox_relay_failures_total",
			Help: "Times the relay stopped on an error and started again.",
		}),
	}
}

func (m *metrics) published(topic string, committed time.Time) {
	m.events.WithLabelValues(topic).Inc()
	m.latency.Observe(time.Since(committed).Seconds())
}

func (m *metrics) position(end, confirmed wal.LSN) {
	if confirmed != 0 && end > confirmed {
		m.slotLag.Set(float64(end - confirmed))
	} else {
		m.slotLag.Set(0)
	}
}
