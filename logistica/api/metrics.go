package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct{ took *prometheus.HistogramVec }

func newMetrics(reg prometheus.Registerer, pace *pace) *metrics {
	m := &metrics{took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "waybill_http_request_duration_seconds",
		Help:    "Time to answer a request, by route and status; streams only where refused.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"route", "status"})}
	if reg != nil {
		reg.MustRegister(m.took, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "waybill_api_pace_requests_per_second",
			Help: "What each merchant may send for long while others send something, too.",
		}, pace.inCompany))
	}
	return m
}

// observe counts a request. Routes and statuses are few, whatever is asked for.
func (m *metrics) observe(route string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.took.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}
