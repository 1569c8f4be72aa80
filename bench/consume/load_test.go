package consume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/alert"
	"github.com/waybillhq/waybill/bench/consume"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/lag"
	"github.com/waybillhq/waybill/test/proc"
)

// reading is what the rule below asks of a group.
func reading(g *lag.Group) alert.Reading {
	return alert.Reading{Group: g.Name, Seconds: g.Seconds, Partial: g.Partial, Draining: g.Draining(), Known: true}
}

// short is a load eight times what the one worker passes that there is at
// first.
func short(t *testing.T) consume.LoadConfig {
	t.Helper()
	rule, err := alert.Parse("time lag > 1s for 1s and not draining clear for 1s")
	if err != nil {
		t.Fatal(err)
	}
	rule.Name = "behind"
	return consume.LoadConfig{
		Engines: engine.Config{Program: proc.Binary(t)}, Rule: rule, Reading: reading,
		Handler: 100 * time.Millisecond, Workers: 1, Max: 20, Produce: 80, Calm: 5, Burst: 10 * time.Second, After: time.Second,
	}
}

// loaded runs a load and holds what must be so of each: a lag that was seen to
// rise and is gone, an alert that fired and is over, and every effect once.
func loaded(t *testing.T, cfg consume.LoadConfig) consume.LoadResult {
	t.Helper()
	r, err := consume.RunLoad(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 0 || r.Reordered != 0 || r.Duplicates != 0 || r.Events < int64(cfg.Produce)*10 {
		t.Errorf("%d events, %d lost, %d reordered, %d twice", r.Events, r.Lost, r.Reordered, r.Duplicates)
	}
	last := r.Samples[len(r.Samples)-1]
	if r.MaxLag < int64(cfg.Produce) || last.Lag == nil || *last.Lag != 0 {
		t.Errorf("lag %d at most, %v at the end", r.MaxLag, last.Lag)
	}
	if r.Fired == nil || r.Over == nil || *r.Over <= *r.Fired {
		t.Errorf("alert fired %v, over %v", r.Fired, r.Over)
	}
	return r
}

// changes are the numbers of workers that were set, in their order.
func changes(r consume.LoadResult) (out []int64) {
	for _, m := range r.Marks {
		if m.Workers > 0 {
			out = append(out, m.Workers)
		}
	}
	return out
}

func TestLoadBenchRaisesALagThatWorkersFollow(t *testing.T) {
	t.Parallel()
	r := loaded(t, short(t))
	if set := changes(r); len(set) == 0 || set[0] != 2 || r.Least != 1 || r.Most < 3 || r.Most > 20 {
		t.Errorf("%d workers at first, %d at most, by %v", r.Least, r.Most, set)
	}
}

func TestLoadBenchByHandChangesWorkersOnce(t *testing.T) {
	t.Parallel()
	cfg := short(t)
	cfg.ByHand, cfg.At = true, 6*time.Second
	r := loaded(t, cfg)
	if set := changes(r); len(set) != 1 || set[0] != 20 || r.Samples[0].Workers != 1 || r.Last != 20 {
		t.Errorf("%d workers, then %d, by %v", r.Samples[0].Workers, r.Last, set)
	}
}

func TestALoadThatWouldShowNothingIsRefused(t *testing.T) {
	t.Parallel()
	for say, args := range map[string][]string{
		"nothing lags":          {"--produce", "50"},
		"--burst 1s":            {"--burst", "1s"},
		"--from 4 --workers 4":  {"--workers", "4"},
		"80 at most":            {"--workers", "200"},
		"--handler 1µs":         {"--handler", "1us"},
		"goes with --by-hand":   {"--at", "5s"},
		"--calm 500":            {"--calm", "500"},
		"--alert: column 12":    {"--alert", "time lag > 2"},
		"within the run, which": {"--by-hand", "--at", "2m"},
	} {
		if r := proc.Run(t, append([]string{"bench", "load"}, args...)...); r.Code != 2 || !strings.Contains(r.Err, say) {
			t.Errorf("%v: exit code %d, %s, want it to say %q", args, r.Code, r.Err, say)
		}
	}
}
