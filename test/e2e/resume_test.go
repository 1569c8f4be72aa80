package e2e

import (
	"maps"
	"slices"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

// A client that read half of what happened before a kill gets the other half
// and what came after from a program that knows of the client only by the id it
// brings.
func TestStreamGoesOnAcrossAKillWithoutGapOrRepetition(t *testing.T) {
	w := proc.Up(t)
	s := follow(t, w, w.DemoKey, "/v1/events", "")
	want, got := map[string][]string{}, map[string][]string{}
	trade := func(n int) {
		for range n {
			o := create(t, w)
			move(t, w, o.ID, "ASSIGNING", "ASSIGNED")
			want[o.ID] = []string{"OrderCreated@1", "OrderStatusChanged@2", "OrderStatusChanged@3"}
		}
	}
	trade(10)
	s.take(got, 17)
	s.close()
	trade(5)
	w.Kill() // some of the last are in no log yet
	w.Start()
	trade(5)
	s = follow(t, w, w.DemoKey, "/v1/events", s.last)
	s.take(got, 3*len(want)-17)
	check(t, got, want)

	// Nothing comes after the last: the next is what happens next.
	trade(1)
	s.take(got, 3)
	check(t, got, want)
}

func check(t *testing.T, got, want map[string][]string) {
	t.Helper()
	if maps.EqualFunc(got, want, slices.Equal) {
		return
	}
	for id := range want {
		if !slices.Equal(got[id], want[id]) {
			t.Errorf("order %s: heard %v, want %v", id, got[id], want[id])
		}
	}
	for id := range got {
		if want[id] == nil {
			t.Errorf("heard %v of %s, which nobody made", got[id], id)
		}
	}
}
