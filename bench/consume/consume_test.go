package consume_test

import (
	"encoding/json"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

func measured(t *testing.T, args ...string) map[string]any {
	t.Helper()
	r := proc.Run(t, append([]string{"bench"}, append(args, "--json")...)...)
	if r.Code != 0 {
		t.Fatalf("exit code %d: %s", r.Code, r.Err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatalf("%v in %s", err, r.Out)
	}
	for name, want := range map[string]any{"lost": 0.0, "reordered": 0.0, "duplicates": 0.0} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	return got
}

func TestConsumeBenchMeasuresAndFindsNothingWrong(t *testing.T) {
	t.Parallel()
	got := measured(t, "consume", "--events", "5000")
	for _, name := range []string{
		"events_per_s", "limit_events_per_s", "plain_vs_tx", "batch_events_per_s", "copy_events_per_s", "batch_vs_tx", "batch_vs_copy",
		"keyed_events_per_s", "took_s",
	} {
		if v, ok := got[name].(float64); !ok || v <= 0 {
			t.Errorf("%s: %v", name, got[name])
		}
	}
	if _, ok := got["poisoned_cost"].(float64); !ok || got["events"] != 5000.0 {
		t.Errorf("%v", got)
	}
}

func TestBufferBenchLosesNothingAndDrawsItsDepth(t *testing.T) {
	t.Parallel()
	got := measured(t, "buffer", "--produce", "2000", "--drain", "500", "--seconds", "2")
	samples, ok := got["samples"].([]any)
	if depth, _ := got["max_depth"].(float64); !ok || len(samples) < 4 || depth < 100 {
		t.Errorf("%d samples, depth %v", len(samples), got["max_depth"])
	}
	if last, ok := samples[0].(map[string]any); !ok || last["depth"] == nil {
		t.Errorf("%v", samples[0])
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"bench", "consume", "--events", "10"}, {"bench", "buffer", "--produce", "0"}, {"bench", "buffer", "--seconds", "0"}, {"bench", "buffer", "--drain", "-1"},
	} {
		if r := proc.Run(t, args...); r.Code != 2 || r.Err == "" {
			t.Errorf("%v: exit code %d, %s", args, r.Code, r.Err)
		}
	}
}
