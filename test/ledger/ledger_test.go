// Package ledger keeps the books of an outbox whose processes are killed: the
// relay, one of two, the broker, Postgres, in any order and in quick succession,
// by kill -9, while writers commit, roll back and take their time. In the end
// the log must have every committed event, in the order of its key, and nothing
// else; copies only where the mode allows any, and then exact ones.
package ledger

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// wholeRun tells a run of this package for its own sake, by `make test-ledger`
// and the Kafka leg, from one among all tests, which is short.
func wholeRun() bool { return os.Getenv("WAYBILL_TEST_KILLS") != "" }

// kills is how many processes are killed in each mode.
func kills(t *testing.T) int {
	t.Helper()
	if !wholeRun() {
		return 6
	}
	n, err := strconv.Atoi(os.Getenv("WAYBILL_TEST_KILLS"))
	if err != nil || n < 1 {
		t.Fatalf("WAYBILL_TEST_KILLS=%q: want a number", os.Getenv("WAYBILL_TEST_KILLS"))
	}
	return n
}

// beside lets short tests of this package run side by side. Whole runs do one
// thing at a time: their times are told.
func beside(t *testing.T) {
	t.Helper()
	if !wholeRun() {
		t.Parallel()
	}
}

// seed decides what is written and who is killed when. Processes are not as
// obedient: a run with the same seed is alike, not the same.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := rand.Uint64N(1 << 32)
	if v := os.Getenv("WAYBILL_TEST_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("WAYBILL_TEST_SEED=%q: want a number", v)
		}
	}
	t.Logf("WAYBILL_TEST_SEED=%d", s)
	return s
}

func TestKillsLoseNothing(t *testing.T) {
	beside(t)
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			if !m.here() {
				t.Skip(m.elsewhere())
			}
			killAndReckon(t, m, kills(t), seed(t))
		})
	}
}

// killAndReckon is one run: writers, killer, then the reckoning.
func killAndReckon(t *testing.T, m mode, n int, seed uint64) {
	h := newHouse(t, m)
	h.addRelay()
	h.addRelay()
	h.keepAll()
	h.begin()
	w := h.write(seed, 8)
	h.kill(n, rand.New(rand.NewPCG(seed, 0)))
	h.flows("after the last kill")
	w.stop()
	h.reckon(w)
	h.atRest()
}

// flows waits until a record that was written from now on is in the log.
func (h *house) flows(when string) {
	h.t.Helper()
	goal := h.tail.count() + 1
	h.eventually(time.Minute, func() (bool, string) {
		return h.tail.count() >= goal, "nothing is published " + when
	})
}
