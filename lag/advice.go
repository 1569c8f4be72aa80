package lag

import (
	"fmt"
	"math"
	"time"
)

// Goal is what an advice aims at. The zero value works.
type Goal struct {
	Drain      time.Duration // how soon a lag shall be gone; default 1 min
	Min, Max   int           // replicas; default 1 and as many as there are partitions
	Workers    int           // of each replica now; default 8
	MaxWorkers int           // of each; default 64
	// Headroom is the share of its capacity that a group which has caught up
	// shall use; default 0.7.
	Headroom float64
}

func (g Goal) withDefaults() Goal {
	or(&g.Drain, time.Minute)
	or(&g.Min, 1)
	or(&g.Workers, 8)
	or(&g.MaxWorkers, 64)
	if g.Headroom <= 0 || g.Headroom > 1 {
		g.Headroom = 0.7
	}
	return g
}

// Advice is how large a group should be, and why.
type Advice struct {
	Group      string   `json:"group"`
	Replicas   int      `json:"replicas"` // never above Partitions: one more would have nothing to read
	Workers    int      `json:"workers"`  // of each
	Now        *int     `json:"members"`
	Partitions int      `json:"partitions"`
	Lag        *int64   `json:"lag"`
	Needed     *float64 `json:"needed_per_second"` // to drain within the goal
	Capacity   *float64 `json:"capacity_per_member"`
	Reason     string   `json:"reason"`
	Stalled    []string `json:"stalled,omitempty"` // partitions more replicas would not help, TOPIC/N
}

// Advise says how many replicas and workers would drain a group within the
// goal. What nobody knows it leaves as it is. Partitions that are stalled count
// for nothing: a failing event fails as well in front of more readers.
func Advise(g *Group, goal Goal) Advice {
	goal = goal.withDefaults()
	a := Advice{
		Group: g.Name, Workers: goal.Workers, Now: g.Members, Partitions: len(g.Partitions),
		Capacity: g.Capacity, Lag: new(int64),
	}
	in := new(float64)
	for _, p := range g.Partitions {
		if p.State == Stalled {
			a.Stalled = append(a.Stalled, fmt.Sprintf("%s/%d", p.Topic, p.Partition))
			continue
		}
		a.Lag, in = sum(a.Lag, p.Lag), sum(in, p.In)
	}
	now := goal.Min
	if g.Members != nil {
		now = *g.Members
	}
	a.Replicas = a.within(goal, now)
	switch {
	case len(a.Stalled) == len(g.Partitions):
		a.Reason = "every partition is stalled: mend the cause, more replicas would not help"
	case g.Members != nil && *g.Members == 0:
		a.Replicas, a.Reason = a.within(goal, 1), "nobody reads: start it"
	case g.Members == nil || a.Lag == nil:
		a.Reason = "how far it is behind is unknown: left as it is"
	case in == nil:
		a.Reason = "rates are not known yet: left as it is"
	case g.Capacity == nil || *g.Capacity <= 0:
		a.Reason = "it was never seen with enough to do, so what a member can pass is unknown: left as it is"
		if *a.Lag == 0 {
			a.Reason = "caught up; " + a.Reason
		}
	default:
		a.size(*a.Lag, *in, *g.Capacity, goal)
	}
	if n := len(a.Stalled); n > 0 && n < len(g.Partitions) {
		a.Reason += fmt.Sprintf("; %d stalled partitions not counted", n)
	}
	return a
}

// size is the arithmetic: what comes in, and the lag over the goal, divided by
// what a member passes.
func (a *Advice) size(behind int64, in, capacity float64, goal Goal) {
	needed := in + float64(behind)/goal.Drain.Seconds()
	a.Needed = &needed
	share := 1.0
	if behind == 0 {
		share = goal.Headroom
	}
	want := max(1, needed/(capacity*share))
	a.Replicas = a.within(goal, int(math.Ceil(min(want, 1e6)-1e-9)))
	a.Reason = fmt.Sprintf("%.0f events/s needed (%.0f come in, %d behind to be gone within %s), %.0f/s a member", needed, in, behind, goal.Drain, capacity)
	if short := want / float64(max(1, a.Replicas)); short > 1.05 {
		// Keys of one partition run side by side: workers help past partitions.
		a.Workers = int(min(float64(goal.MaxWorkers), math.Ceil(float64(goal.Workers)*short)))
		a.Reason += fmt.Sprintf("; that is more than %d replicas: more workers in each", a.Replicas)
	}
}

func (a *Advice) within(goal Goal, n int) int {
	limit := a.Partitions
	if goal.Max > 0 {
		limit = min(limit, goal.Max)
	}
	return max(min(max(n, goal.Min), limit), min(goal.Min, 1))
}
