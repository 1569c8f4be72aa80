package couriers

import "github.com/prometheus/client_golang/prometheus"

// What may become of a position.
const (
	published = "published"
	stale     = "stale"
	throttled = "throttled"
	refused   = "refused"
	lost      = "lost"
)

func (t *Telemetry) count(outcome string, n int) { t.outcomes.WithLabelValues(outcome).Add(float64(n)) }

// newOutcomes begins at zero for each, so that the first loss shows as a rise.
func newOutcomes() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_courier_positions_total",
		Help: "Positions of couriers by what became of them: published, stale (left out for their time), throttled, refused (nothing is taken while the broker is away), lost (accepted, and not taken by the broker in time).",
	}, []string{"outcome"})
	for _, o := range []string{published, stale, throttled, refused, lost} {
		v.WithLabelValues(o)
	}
	return v
}
