package transform

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// outcome is what became of a record.
type outcome string

const (
	transformed outcome = "done"
	dead        outcome = "dead"    // given up: its copy is in the dead letter topic
	dropped     outcome = "dropped" // given up without one, by its policy
	skipped     outcome = "skipped" // nobody handles its type
)

// meter is a group's figures. What became of records counts when it is committed.
type meter struct {
	group        string
	events       *prometheus.CounterVec
	made         *prometheus.CounterVec
	failures     *prometheus.CounterVec
	transactions *prometheus.CounterVec
	duration     prometheus.Observer
	batch        prometheus.Observer
	outages      prometheus.Counter
	held         prometheus.Gauge
	stopped      prometheus.Gauge
}

func newMeter(r prometheus.Registerer, group string) *meter {
	const prefix = "waybill_transform_"
	label := prometheus.Labels{"group": group}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, append([]string{"group"}, labels...)))
	}
	gauge := func(name, help string) prometheus.Gauge {
		return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, []string{"group"})).With(label)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Observer {
		return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, []string{"group"})).With(label)
	}
	return &meter{
		group:        group,
		events:       counter("events_total", "Records by what became of them.", "type", "outcome"),
		made:         counter("made_total", "Records written in transactions that committed.", "topic"),
		failures:     counter("failures_total", "Failed tries, by class of error.", "class"),
		transactions: counter("transactions_total", "Transactions by how they ended: committed, aborted (a rebalance, or a record that was not taken) or failed (the broker was away, or another member has this one's name).", "end"),
		duration:     histogram("transaction_seconds", "From the first record written to the commit.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		batch:        histogram("batch_events", "Records read in one transaction.", prometheus.ExponentialBuckets(1, 2, 13)),
		outages:      counter("infrastructure_errors_total", "Tries that failed for want of infrastructure.").With(label),
		held:         gauge("held_partitions", "Partitions that wait for a record to be tried again."),
		stopped:      gauge("stopped_partitions", "Partitions stopped at a record by the policy."),
	}
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

func (m *meter) ended(end string) { m.transactions.WithLabelValues(m.group, end).Inc() }

// committed counts what a transaction did.
func (m *meter) committed(items []*item) {
	m.ended("committed")
	m.batch.Observe(float64(len(items)))
	type kind struct {
		typ  string
		what outcome
	}
	events, made := map[kind]int{}, map[string]int{}
	for _, it := range items {
		events[kind{it.typ(), it.what}]++
		for _, r := range it.out {
			made[r.Topic]++
		}
	}
	for k, n := range events {
		m.events.WithLabelValues(m.group, k.typ, string(k.what)).Add(float64(n))
	}
	for topic, n := range made {
		m.made.WithLabelValues(m.group, topic).Add(float64(n))
	}
}
