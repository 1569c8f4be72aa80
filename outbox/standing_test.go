package outbox_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/pg/local"
)

// A slot that no relay of this process will make is missed at once: the first
// request is refused already.
func TestASlotThatNobodyHereWillMakeIsMissedAtOnce(t *testing.T) {
	t.Parallel()
	_, db := serverOf(t, local.Config{})
	told := make(chan outbox.GateState, 1)
	g := guard(t, db, outbox.GateConfig{Message: true, SlotGrace: -1, Changed: func(_ context.Context, s outbox.GateState) {
		select {
		case told <- s:
		default:
		}
	}})
	g.run()
	select {
	case s := <-told:
		if !closed(outbox.SlotMissing)(s) || g.log.count("writers of events are refused") == 0 {
			t.Errorf("%+v", s)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is said of it")
	}
}

// What is shown is what a gate would do.
func TestFiguresAreWeighedAsAGateDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(1, 100).Draw(t, "budget")
		n := rapid.Int64Range(0, 200).Draw(t, "backlog")
		got := outbox.Weigh(outbox.GateConfig{MaxBacklog: budget}, outbox.Figures{Backlog: &n})
		if (got.Closed != nil) != (n > budget) || got.MaxBacklog != budget {
			t.Fatalf("%d of %d: %+v", n, budget, got)
		}
		if got.Lingering != (n <= budget && n >= budget-budget/5) {
			t.Fatalf("%d of %d: lingering %t", n, budget, got.Lingering)
		}
	})
	for name, c := range map[string]struct {
		figures outbox.Figures
		cfg     outbox.GateConfig
		why     outbox.OverloadReason
	}{
		"no slot, in mode message":  {cfg: outbox.GateConfig{Message: true}, why: outbox.SlotMissing},
		"no slot, in mode wal":      {},
		"lost, in mode message":     {cfg: outbox.GateConfig{Message: true}, figures: outbox.Figures{SlotExists: true, WALStatus: "lost"}, why: outbox.SlotLost},
		"half of what is kept":      {figures: outbox.Figures{SlotExists: true, Lag: new(int64(1)), Kept: new(int64(60)), KeepLimit: new(int64(100))}, why: outbox.WALOverBudget},
		"a left-over slot and poll": {cfg: outbox.GateConfig{Poll: true}, figures: outbox.Figures{SlotExists: true, Kept: new(int64(60)), KeepLimit: new(int64(100))}},
	} {
		got := outbox.Weigh(c.cfg, c.figures).Closed
		if (got == nil) != (c.why == "") || got != nil && got.Reason != c.why {
			t.Errorf("%s: %+v, want %q", name, got, c.why)
		}
	}
}
