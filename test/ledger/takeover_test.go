package ledger

import (
	"slices"
	"testing"
	"time"
)

// The relay that works is killed under load, and the one that stands by goes
// on. How soon is told: what decides it is how often the other looks.
func TestStandbyTakesOver(t *testing.T) {
	beside(t)
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			if !m.here() {
				t.Skip(m.elsewhere())
			}
			takeOver(t, m)
		})
	}
}

func takeOver(t *testing.T, m mode) {
	h := newHouse(t, m)
	active := h.startRelay()
	h.begin()
	standby := h.startRelay()
	h.standsBy(standby, 1)
	w := h.write(seed(t), 6)
	rounds := 2
	if wholeRun() {
		rounds = 10
	}
	var took []time.Duration
	for range rounds {
		h.flows("under a working relay")
		waits := active.log.count(standingBy)
		killed := time.Now()
		h.must(active.kill())
		h.eventually(2*time.Minute, func() (bool, string) {
			d, ok := w.published(killed)
			if ok {
				took = append(took, d)
			}
			return ok, "nothing that was written after the kill is published"
		})
		h.must(active.start(t.Context()))
		active, standby = standby, active
		h.standsBy(standby, waits+1)
	}
	w.stop()
	h.reckon(w)
	slices.Sort(took)
	t.Logf("%s: published again after kill -9 of the relay: median %s, longest %s of %d", m.name,
		took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took))
	if longest := took[len(took)-1]; longest > 30*time.Second {
		t.Errorf("nothing was published for %s", longest)
	}
}

// standingBy is what a relay prints once, when another works.
const standingBy = "standing by"

// standsBy waits until the relay has said so n times.
func (h *house) standsBy(r *relay, n int) {
	h.t.Helper()
	h.eventually(time.Minute, func() (bool, string) {
		return r.log.count(standingBy) >= n, r.name + " does not stand by"
	})
}

// published tells how long after that moment the first event was in the log
// that was not begun before it: the dead cannot have read that one.
func (w *writers) published(after time.Time) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.h.tail.mu.Lock()
	defer w.h.tail.mu.Unlock()
	first := time.Duration(-1)
	for _, a := range slices.Backward(w.attempts) {
		if a.begun.Before(after) || a.fate != committed {
			continue
		}
		if at, ok := w.h.tail.tokens[a.tokens[0]]; ok && (first < 0 || at.Sub(after) < first) {
			first = at.Sub(after)
		}
	}
	return first, first >= 0
}
