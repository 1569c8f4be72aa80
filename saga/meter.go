package saga

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// meter counts. What is counted in a transaction that then fails is counted
// again when it is tried anew: the counters tell how much is going on, the
// gauges what there is.
type meter struct {
	started, ended, overdue, gaveUp *prometheus.CounterVec

	mu   sync.Mutex
	open []openCount // of the last count; nil: unknown
}

type openCount struct {
	saga   string
	state  State
	n      int64
	oldest time.Time
}

// newMeter labels all of it with the group: a process may have an observer for
// each of several.
func newMeter(reg prometheus.Registerer, group string) *meter {
	if reg != nil {
		reg = prometheus.WrapRegistererWith(prometheus.Labels{"group": group}, reg)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		if reg != nil {
			reg.MustRegister(c)
		}
		return c
	}
	m := &meter{
		started: counter("waybill_saga_started_total", "Instances of which something was seen for the first time.", "saga"),
		ended:   counter("waybill_saga_ended_total", "Times an instance came to an end.", "saga", "state"),
		overdue: counter("waybill_saga_overdue_total", "Asks for steps that were overdue.", "saga", "step", "direction"),
		gaveUp:  counter("waybill_saga_operator_needed_total", "Times a step was asked for as often as is declared, in vain.", "saga", "step", "direction"),
	}
	if reg != nil {
		reg.MustRegister(gauges{m})
	}
	return m
}

// moved counts an instance that went from one state to another.
func (m *meter) moved(saga string, fresh bool, was, is State) {
	if fresh {
		m.started.WithLabelValues(saga).Inc()
	}
	if is.Ended() && was != is {
		m.ended.WithLabelValues(saga, string(is)).Inc()
	}
}

var (
	openDesc   = prometheus.NewDesc("waybill_saga_open", "Instances that have not ended, by state.", []string{"saga", "state"}, nil)
	oldestDesc = prometheus.NewDesc("waybill_saga_oldest_open_age_seconds", "Age of the oldest instance that has not ended, 0 if there is none.", []string{"saga"}, nil)
)

// gauges shows the last count. While there is none, nothing is shown: a zero
// would say that all is well.
type gauges struct{ m *meter }

// Describe implements prometheus.Collector.
func (g gauges) Describe(ch chan<- *prometheus.Desc) { ch <- openDesc; ch <- oldestDesc }

// Collect implements prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	ages := map[string]float64{}
	for _, c := range g.m.open {
		ch <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(c.n), c.saga, string(c.state))
		if ages[c.saga] = max(ages[c.saga], 0); c.n > 0 {
			ages[c.saga] = max(ages[c.saga], time.Since(c.oldest).Seconds())
		}
	}
	for saga, age := range ages {
		ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age, saga)
	}
}

// count looks at what is open.
func (o *Observer) count(ctx context.Context) error {
	if o.cfg.Metrics == nil {
		return nil
	}
	var open []openCount
	err := within(ctx, o.deps.DB, "", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT saga, state, count(i.id), coalesce(min(started_at), now())
			FROM unnest($1::text[]) saga CROSS JOIN unnest($2::text[]) state
			LEFT JOIN saga.instances i USING (saga, state) WHERE ended_at IS NULL GROUP BY saga, state`,
			o.names(), []State{Running, Compensating, NeedsOperator})
		if err != nil {
			return err
		}
		open, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c openCount, err error) {
			return c, row.Scan(&c.saga, &c.state, &c.n, &c.oldest)
		})
		return err
	})
	o.meter.mu.Lock()
	defer o.meter.mu.Unlock()
	o.meter.open = open
	if err != nil {
		return fmt.Errorf("count open sagas: %w", err)
	}
	return nil
}
