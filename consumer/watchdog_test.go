package consumer

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

func TestAPartitionThatMakesNoProgressIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	hold := make(chan struct{})
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data == (moved{"stuck", 2}) {
			select {
			case <-hold:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.StallAfter = 400 * time.Millisecond; s.cfg.Metrics = w.metrics })
	w.move("a", "stuck", "a", "stuck", "a")
	stalled := func() string {
		all, err := Partitions(t.Context(), w.db, w.group)
		if err != nil || len(all) != 1 {
			return ""
		}
		return all[0].Stalled
	}
	w.until("it is told", func() bool { // a slow machine may have stood still before that
		s := stalled()
		return strings.Contains(s, `"stuck"`) && strings.Contains(s, "offset 3 ") && w.gauge("waybill_consumer_stalled_partitions") == 1
	})
	close(hold)
	w.settled()
	w.until("its end is told", func() bool { return stalled() == "" && w.gauge("waybill_consumer_stalled_partitions") == 0 })
}

// What is known to hold a partition up is no stall.
func TestWhatIsKnownToWaitIsNoStall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	g := New(Deps{DB: w.db}, Config{Group: w.group, Logger: slog.New(slog.DiscardHandler), Metrics: w.metrics})
	c := w.contract
	on(g, &c, keep)
	s := newSession(g, t.Context())
	p := newPartition(t.Context(), place{w.contract.Topic, 0}, [16]byte{1}, 1, 0)
	s.parts[p.place] = p
	l := p.lane("a")
	m := g.read(w.record("a"))
	m.mark = p.tracker.add(0, -1)
	l.queue = append(l.queue, m)
	told := func() bool {
		p.seen = progress{next: 0, since: time.Now().Add(-time.Hour)}
		s.lookForStalls(t.Context())
		return w.gauge("waybill_consumer_stalled_partitions") > 0
	}
	if !told() {
		t.Error("a stall is not told: the rest shows nothing")
	}
	for what, set := range map[string]func(bool){
		"infrastructure is away": func(is bool) { s.down.Store(is) },
		"its event waits for it": func(is bool) { l.waits = map[bool]int{true: 3}[is] },
		"it is stopped":          func(is bool) { p.stopping = is },
		"nothing is in memory":   func(is bool) { p.tracker.open = p.tracker.open[:map[bool]int{false: 1}[is]] },
	} {
		set(true)
		if told() {
			t.Errorf("%s: told as a stall", what)
		}
		set(false)
		if !told() {
			t.Errorf("%s: not told when it is over", what)
		}
	}
}
