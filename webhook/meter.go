package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meter counts. Tenants and endpoints are no labels: they are without end.
type meter struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newMeter(reg prometheus.Registerer, s *Sender) *meter {
	m := &meter{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waybill_webhook_calls_total", Help: "Calls of endpoints, by what came of them and whether they were the first of their delivery.",
		}, []string{"outcome", "try"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waybill_webhook_call_seconds", Help: "How long calls took, from the look at the name to the last byte.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15},
		}, []string{"outcome"}),
	}
	if reg != nil {
		reg.MustRegister(m.calls, m.seconds, gauges{s})
	}
	return m
}

func (m *meter) called(a *answer, j *job) {
	outcome, try := "failed", "first"
	switch {
	case a.ok():
		outcome = "delivered"
	case a.Status == 0:
		outcome = "no_answer"
	}
	if j.attempts > 0 {
		try = "again"
	}
	m.calls.WithLabelValues(outcome, try).Inc()
	m.seconds.WithLabelValues(outcome).Observe((time.Duration(a.Millis) * time.Millisecond).Seconds())
}

var (
	inFlightDesc = prometheus.NewDesc("waybill_webhook_in_flight", "Calls under way.", nil, nil)
	lanesDesc    = prometheus.NewDesc("waybill_webhook_endpoints", "Endpoints this sender has, by whether their breaker is open.", []string{"state"}, nil)
	heldDesc     = prometheus.NewDesc("waybill_webhook_held_bytes", "Bodies in memory.", nil, nil)
	unnotedDesc  = prometheus.NewDesc("waybill_webhook_unnoted", "Calls whose outcome is not in the database yet.", nil, nil)
)

// gauges shows what a sender has at hand.
type gauges struct{ s *Sender }

// Describe implements prometheus.Collector.
func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inFlightDesc, lanesDesc, heldDesc, unnotedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(inFlightDesc, g.s.rota.inFlight)
	gauge(lanesDesc, len(g.s.lanes)-len(g.s.resting), "closed")
	gauge(lanesDesc, len(g.s.resting), "open")
	gauge(heldDesc, g.s.held)
	gauge(unnotedDesc, len(g.s.results))
}
