package lag

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// collector shows the last snapshot. What is unknown is left out: a zero would
// say that all is well.
type collector struct{ monitor *Monitor }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	lagEventsDesc  = desc("waybill_consumer_lag_events", "Events a group has still to read. The partition is empty where there are too many to list.", "group", "topic", "partition")
	lagSecondsDesc = desc("waybill_consumer_lag_seconds", "Age of the event a group reads next, 0 if it has read all; exact is false where it is estimated.", "group", "topic", "partition", "exact")
	stateDesc      = desc("waybill_consumer_state", "1 for the state a group is in, with no series for the others.", "group", "topic", "partition", "state")
	membersDesc    = desc("waybill_consumer_members", "Members of a group.", "group")
	inDesc         = desc("waybill_consumer_in_events_per_second", "Events written to what a group reads.", "group")
	outDesc        = desc("waybill_consumer_out_events_per_second", "Events a group passed.", "group")
	drainDesc      = desc("waybill_consumer_drain_seconds", "Time until a group has caught up at its present rates; absent if it never will.", "group")
	deadDesc       = desc("waybill_consumer_dead_letters", "Dead letters a group has written.", "group")
	leftOutDesc    = desc("waybill_lag_partitions_left_out", "Pairs of group and partition past the bound, which nothing is known of.")
	roundDesc      = desc("waybill_lag_round_seconds", "What the last look at all groups took.")
	requestsDesc   = desc("waybill_lag_round_requests", "Requests to brokers of the last look.")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		lagEventsDesc, lagSecondsDesc, stateDesc, membersDesc, inDesc, outDesc, drainDesc, deadDesc,
		leftOutDesc, roundDesc, requestsDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.monitor.Latest()
	if s == nil {
		return
	}
	pairs := 0
	for i := range s.Groups {
		pairs += len(s.Groups[i].Partitions)
	}
	show := func(d *prometheus.Desc, v *float64, labels ...string) {
		if v != nil {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, *v, labels...)
		}
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, p := range series(g, pairs <= c.monitor.cfg.MetricPartitions) {
			number := ""
			if p.Partition >= 0 {
				number = strconv.Itoa(int(p.Partition))
			}
			show(lagEventsDesc, float(p.Lag), p.Group, p.Topic, number)
			show(lagSecondsDesc, p.Seconds, p.Group, p.Topic, number, strconv.FormatBool(p.Exact))
			show(stateDesc, one(), p.Group, p.Topic, number, string(p.State))
		}
		if g.Members != nil {
			n := float64(*g.Members)
			show(membersDesc, &n, g.Name)
		}
		show(inDesc, g.In, g.Name)
		show(outDesc, g.Out, g.Name)
		show(drainDesc, g.Drain, g.Name)
		show(deadDesc, float(g.DeadLetters), g.Name)
	}
	left, requests := float64(s.LeftOut), float64(s.Round.Requests)
	show(leftOutDesc, &left)
	show(roundDesc, &s.Round.Took)
	show(requestsDesc, &requests)
}

// series is what a group shows: its partitions, or one of each topic.
func series(g *Group, each bool) []Partition {
	if each {
		return g.Partitions
	}
	var out []Partition
	var topic Group
	for i, p := range g.Partitions {
		if i == 0 || g.Partitions[i-1].Topic != p.Topic {
			topic = Group{State: OK, Lag: new(int64)}
		}
		topic.add(p)
		if i == len(g.Partitions)-1 || g.Partitions[i+1].Topic != p.Topic {
			out = append(out, Partition{
				Group: p.Group, Topic: p.Topic, Partition: -1,
				Lag: topic.Lag, Seconds: topic.Seconds, Exact: topic.Exact, State: topic.State,
			})
		}
	}
	return out
}

func one() *float64 {
	v := 1.0
	return &v
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n)
	return &v
}
