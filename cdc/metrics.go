package cdc

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/waybillhq/waybill/pg/wal"
)

type metrics struct {
	events    *prometheus.CounterVec
	latency   prometheus.Histogram
	inFlight  prometheus.Gauge
	slotLag   prometheus.Gauge
	failures  prometheus.Counter
	losses    prometheus.Counter
	omitted   *prometheus.CounterVec
	suspended prometheus.Gauge
	rowsRead  *prometheus.GaugeVec
	rowsTotal *prometheus.GaugeVec
	due       *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	byTable := func(name, help string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"table"})
	}
	return &metrics{
		events: f.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_cdc_events_total",
			Help: "Change events acknowledged by the broker, by topic and operation; tombstones are not counted.",
		}, []string{"topic", "op"}),
		latency: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "waybill_cdc_publish_duration_seconds",
			Help:    "From a change's commit, by the database's clock, to the broker's acknowledgement.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 18),
		}),
		inFlight: gauge("waybill_cdc_in_flight_records", "Records given to the broker and not acknowledged, at the last keepalive."),
		slotLag:  gauge("waybill_cdc_slot_lag_bytes", "WAL between what was confirmed and what the server has read for us, at the last keepalive."),
		failures: counter("waybill_cdc_failures_total", "Times the stream broke on an error and was opened again."),
		losses:   counter("waybill_cdc_slot_losses_total", "Times the replication slot was found lost and every table read again."),
		omitted: f.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_cdc_omitted_values_total",
			Help: "Values left out of events because they are too large or cannot be carried.",
		}, []string{"table"}),
		suspended: gauge("waybill_cdc_suspended_tables", "Tables whose changes are not published; waybill cdc status says why."),
		rowsRead:  byTable("waybill_cdc_snapshot_rows", "Rows of the table's latest snapshot that are published."),
		rowsTotal: byTable("waybill_cdc_snapshot_rows_estimated", "Rows the latest snapshot will have, as estimated when it began; absent if there is no estimate."),
		due:       byTable("waybill_cdc_snapshot_due", "1 while a snapshot of the table is asked for or under way."),
	}
}

func (m *metrics) published(topic string, op byte, committed time.Time) {
	m.events.WithLabelValues(topic, string(op)).Inc()
	if op != opRead {
		m.latency.Observe(time.Since(committed).Seconds())
	}
}

func (m *metrics) position(end, confirmed wal.LSN) {
	if confirmed != 0 && end > confirmed {
		m.slotLag.Set(float64(end - confirmed))
	} else {
		m.slotLag.Set(0)
	}
}

func (m *metrics) snapshot(s *state) {
	m.rowsRead.WithLabelValues(s.Name).Set(float64(s.RowsRead))
	if s.RowsTotal != nil {
		m.rowsTotal.WithLabelValues(s.Name).Set(float64(*s.RowsTotal))
	}
	due := 0.0
	if s.due() {
		due = 1
	}
	m.due.WithLabelValues(s.Name).Set(due)
}
