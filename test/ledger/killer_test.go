package ledger

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// kill kills n processes at random moments: some while the log moves, between
// commit, publication and mark, some while others are still coming back.
func (h *house) kill(n int, r *rand.Rand) {
	h.t.Helper()
	struck := map[string]int{}
	began := time.Now()
	bound := began.Add(time.Duration(n)*6*time.Second + time.Minute)
	for done := 0; done < n; {
		if time.Now().After(bound) {
			h.t.Fatalf("only %d of %d kills within %s: %v", done, n, time.Since(began), struck)
		}
		if r.IntN(4) > 0 {
			h.awaitMotion(bound)
			pause(h.t.Context(), time.Duration(r.IntN(900))*time.Millisecond)
		} else {
			pause(h.t.Context(), time.Duration(r.IntN(60))*time.Millisecond)
		}
		m := h.victim(r)
		if m == nil {
			pause(h.t.Context(), 20*time.Millisecond) // all are away
			continue
		}
		ok, err := m.strike(h.t.Context(), time.Duration(r.IntN(300))*time.Millisecond)
		h.must(err)
		if !ok {
			continue
		}
		done++
		struck[m.name]++
		if done%20 == 0 {
			h.t.Logf("%d kills in %s, %d records: %v", done, time.Since(began).Round(time.Second), h.tail.count(), struck)
		}
	}
	h.t.Logf("%d kills in %s: %v", n, time.Since(began).Round(time.Second), struck)
}

// awaitMotion waits until the log moves: what nobody works on has nothing to
// lose. Not for long, since that is another's claim.
func (h *house) awaitMotion(bound time.Time) {
	seen := h.tail.count()
	for late := time.Now().Add(10 * time.Second); h.tail.count() == seen && time.Now().Before(late) && time.Now().Before(bound); {
		pause(h.t.Context(), 5*time.Millisecond)
	}
}

// victim is one of those that are up, nil if none is. A relay more often than
// not; of a real Kafka's house the broker, which there serves the registry
// alone, seldom.
func (h *house) victim(r *rand.Rand) *member {
	var up []*member
	for _, m := range h.members {
		if !m.up.Load() {
			continue
		}
		weight := 3
		switch {
		case strings.HasPrefix(m.name, "relay"):
			weight = 4
		case m.name == "broker" && brokertest.Kafka():
			weight = 1
		}
		for range weight {
			up = append(up, m)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[r.IntN(len(up))]
}
