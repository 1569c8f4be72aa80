package push

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	connections prometheus.Gauge
	delivered   prometheus.Counter
	evictions   prometheus.Counter
	outlived    prometheus.Counter
	unchecked   prometheus.Counter
	skipped     prometheus.Counter
	duplicates  prometheus.Counter
	restarts    prometheus.Counter
	forgotten   prometheus.Counter
	resumes     *prometheus.CounterVec
	refused     *prometheus.CounterVec
	delay       prometheus.Histogram
	lag         *lag
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waybill_push_connections", Help: "Open connections.",
		}),
		delivered:  counter("messages_delivered_total", "Messages and heartbeats written to connections."),
		evictions:  counter("evictions_total", "Connections ended because their client did not keep up."),
		outlived:   counter("credentials_outlived_total", "Connections ended because the credential they were opened by was good no more."),
		unchecked:  counter("credential_checks_failed_total", "Times the hub could not ask whether credentials of open connections are good yet."),
		skipped:    counter("records_skipped_total", "Records skipped because their envelope or route failed."),
		duplicates: counter("duplicates_dropped_total", "Records dropped because their id was read before."),
		restarts:   counter("log_restarts_total", "Times the log had to be read from its tail again."),
		forgotten:  counter("latest_forgotten_total", "Newest messages of their name that were dropped because too many names are kept."),
		resumes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_push_resumes_total",
			Help: "Clients that came with a cursor; tail: continued there, expired or invalid: reset.",
		}, []string{"outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_push_refused_total", Help: "Connections refused, by the bound that was met.",
		}, []string{"bound"}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "waybill_push_delay_seconds",
			Help:    "From a record's timestamp in the log until its messages were ready for connections.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30},
		}),
		lag: newLag(),
	}
	return m, m.register(reg)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "waybill_push_" + name, Help: help})
}

func (m *metrics) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{
		m.connections, m.delivered, m.evictions, m.outlived, m.unchecked, m.skipped, m.duplicates,
		m.restarts, m.forgotten, m.resumes, m.refused, m.delay, m.lag,
	} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("register: %w", err)
		}
	}
	return nil
}

// lag is a gauge that is absent while nobody knows: unknown is not zero.
type lag struct {
	desc  *prometheus.Desc
	mu    sync.Mutex
	known bool
	value int64
}

func newLag() *lag {
	return &lag{desc: prometheus.NewDesc("waybill_push_lag_records",
		"Records of the log the hub has not read yet; absent when the log's end is not known.", nil, nil)}
}

func (l *lag) set(v int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.value = true, v
}

func (l *lag) unknown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = false
}

// Describe implements [prometheus.Collector].
func (l *lag) Describe(ch chan<- *prometheus.Desc) { ch <- l.desc }

// Collect implements [prometheus.Collector].
func (l *lag) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		ch <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, float64(l.value))
	}
}
