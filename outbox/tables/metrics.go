package tables

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/waybillhq/waybill/outbox/archive"
)

type retentionMetrics struct {
	bytes    prometheus.Gauge
	days     prometheus.Gauge
	held     prometheus.Gauge
	archived prometheus.Counter
	last     *lateGauge
	failures prometheus.Counter
}

func newRetentionMetrics(reg prometheus.Registerer) *retentionMetrics {
	f := promauto.With(reg)
	return &retentionMetrics{
		bytes: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_kept_bytes",
			Help: "Size of the outbox's events and marks with their indexes, at the last round of retention.",
		}),
		days: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_kept_days",
			Help: "Days whose partition holds events, at the last round of retention.",
		}),
		held: f.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_held_days",
			Help: "Of the kept days, those older than they are to be kept.",
		}),
		archived: f.NewCounter(prometheus.CounterOpts{
			Name: "waybill_outbox_archived_events_total",
			Help: "Events written to the archive.",
		}),
		last: &lateGauge{reg: reg, Gauge: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_outbox_last_archive_timestamp_seconds",
			Help: "When a file of the archive was last written, by whichever process; absent before the first.",
		})},
		failures: f.NewCounter(prometheus.CounterOpts{
			Name: "waybill_outbox_retention_failures_total",
			Help: "Rounds of retention in which something failed.",
		}),
	}
}

// lateGauge is absent until it is set: a zero would be taken for 1970, and alarm
// where nothing is old enough yet.
type lateGauge struct {
	prometheus.Gauge
	reg  prometheus.Registerer
	once sync.Once
}

func (g *lateGauge) Set(v float64) {
	g.Gauge.Set(v)
	if v > 0 && g.reg != nil {
		g.once.Do(func() { g.reg.MustRegister(g.Gauge) })
	}
}

func (m *retentionMetrics) wrote(f *archive.File, at time.Time) {
	m.archived.Add(float64(f.Events))
	m.last.Set(float64(at.Unix()))
}

// measure takes the sizes of the outbox. It looks at files and catalogs, not at
// rows.
func (o *round) measure(ctx context.Context) error {
	var bytes, days, last float64
	err := o.db.QueryRow(ctx, `SELECT
		coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::float8,
		count(*) FILTER (WHERE i.inhparent = 'waybill.outbox_events'::regclass AND pg_relation_size(i.inhrelid) > 0
			AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT')::float8,
		(SELECT coalesce(extract(epoch FROM max(written_at)), 0) FROM waybill.outbox_archives)::float8
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent IN ('waybill.outbox_events'::regclass, 'waybill.outbox_published'::regclass)`).Scan(&bytes, &days, &last)
	if err != nil {
		return fmt.Errorf("measure the outbox: %w", err)
	}
	held := 0
	for _, d := range o.days {
		if rows, err := o.hasRows(ctx, d.events.Table); err == nil && rows { // gone when it was dropped
			held++
		}
	}
	o.metrics.bytes.Set(bytes)
	o.metrics.days.Set(days)
	o.metrics.held.Set(float64(held))
	o.metrics.last.Set(last)
	return nil
}
