package lag

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawGroup(t *rapid.T) *Group {
	g := &Group{Name: "g"}
	maybe := func(name string) *float64 {
		if rapid.IntRange(0, 4).Draw(t, name+" unknown") == 0 {
			return nil
		}
		return amount(rapid.Float64Range(0, 1e6).Draw(t, name))
	}
	if rapid.IntRange(0, 4).Draw(t, "members unknown") > 0 {
		g.Members = amount(rapid.IntRange(0, 50).Draw(t, "members"))
	}
	g.Capacity = maybe("capacity")
	for i := range rapid.IntRange(1, 20).Draw(t, "partitions") {
		p := Partition{Topic: "t", Partition: int32(i), In: maybe("in"), State: rapid.SampledFrom(States()).Draw(t, "state")}
		if rapid.IntRange(0, 4).Draw(t, "lag unknown") > 0 {
			p.Lag = amount(rapid.Int64Range(0, 1e12).Draw(t, "lag"))
		}
		g.Partitions = append(g.Partitions, p)
	}
	return g
}

func TestAdviceIsWithinBoundsAndSaysWhy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		goal := Goal{Min: rapid.IntRange(0, 3).Draw(t, "min"), Max: rapid.IntRange(0, 30).Draw(t, "max")}
		a := Advise(g, goal)
		if a.Replicas < 1 || a.Replicas > len(g.Partitions) || goal.Max > 0 && a.Replicas > max(goal.Max, 1) {
			t.Fatalf("%+v", a)
		}
		if a.Workers < 8 || a.Workers > 64 || a.Reason == "" {
			t.Fatalf("%+v", a)
		}
		if g.Members != nil && (a.Lag == nil || len(a.Stalled) == len(g.Partitions)) && a.Replicas != a.within(goal.withDefaults(), *g.Members) {
			t.Fatalf("unknown or stalled, and changed: %+v", a)
		}
	})
}

func TestAdviceIsTheArithmeticOfTheGoal(t *testing.T) {
	group := func(members int, behind int64, in, capacity float64, partitions int) *Group {
		g := &Group{Name: "g", Members: &members, Capacity: &capacity}
		for i := range partitions {
			p := Partition{Topic: "t", Partition: int32(i), State: OK, Lag: new(int64), In: new(float64)}
			if i == 0 {
				p.Lag, p.In = &behind, &in
			}
			g.Partitions = append(g.Partitions, p)
		}
		return g
	}
	for _, c := range []struct {
		name              string
		g                 *Group
		replicas, workers int
		say               string
	}{
		{"twice what one passes", group(1, 6000, 100, 100, 8), 2, 8, "200 events/s needed"},
		{"more than partitions", group(1, 60_000, 0, 100, 4), 4, 20, "more workers"},
		{"caught up", group(6, 0, 140, 100, 8), 2, 8, "140 events/s"},
		{"idle", group(6, 0, 0, 100, 8), 1, 8, "0 events/s"},
		{"nobody reads", group(0, 50, 0, 100, 8), 1, 8, "start it"},
		{"never seen busy", group(3, 50, 10, 0, 8), 3, 8, "left as it is"},
	} {
		a := Advise(c.g, Goal{Drain: time.Minute})
		if a.Replicas != c.replicas || a.Workers != c.workers || !strings.Contains(a.Reason, c.say) {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
	g := group(2, 1_000_000, 10, 100, 8)
	g.Partitions[0].State = Stalled
	if a := Advise(g, Goal{}); a.Replicas != 1 || len(a.Stalled) != 1 || !strings.Contains(a.Reason, "stalled") {
		t.Errorf("a failing event must not be answered with replicas: %+v", a)
	}
}
