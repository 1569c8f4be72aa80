package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges shows the last count. While there is none, nothing is shown: a zero
// would say that all is well.
type gauges struct{ k *Keeper }

var (
	labels       = []string{"tenant", "queue"}
	messagesDesc = prometheus.NewDesc("waybill_queue_messages", "Messages in a queue, by state.", append(labels, "state"), nil)
	againDesc    = prometheus.NewDesc("waybill_queue_redelivered_messages", "Messages in a queue that came back at least once.", labels, nil)
	deadDesc     = prometheus.NewDesc("waybill_queue_dead_messages", "Dead letters of a queue.", labels, nil)
	limitDesc    = prometheus.NewDesc("waybill_queue_limit_messages", "Messages past which senders are refused.", labels, nil)
	oldestDesc   = prometheus.NewDesc("waybill_queue_oldest_ready_age_seconds", "Age of the oldest message that may be delivered, 0 if there is none.", labels, nil)
)

// Describe implements prometheus.Collector.
func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{messagesDesc, againDesc, deadDesc, limitDesc, oldestDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	for _, s := range g.k.stats {
		gauge := func(d *prometheus.Desc, v float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{s.Tenant, s.Name}, more...)...)
		}
		gauge(messagesDesc, float64(s.Ready), "ready")
		gauge(messagesDesc, float64(s.InFlight), "in_flight")
		gauge(messagesDesc, float64(s.Delayed), "delayed")
		gauge(messagesDesc, float64(s.Waiting), "waiting")
		gauge(againDesc, float64(s.Redelivered))
		gauge(deadDesc, float64(s.Dead))
		gauge(limitDesc, float64(s.MaxLength))
		age := 0.0
		if s.Oldest != nil {
			age = max(0, time.Since(*s.Oldest).Seconds())
		}
		gauge(oldestDesc, age)
	}
}
