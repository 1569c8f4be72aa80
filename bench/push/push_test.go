package push_test

import (
	"encoding/json"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

func TestPushBenchMeasuresAndEveryEventIsReadOnce(t *testing.T) {
	t.Parallel()
	r := proc.Run(t, "bench", "push", "--connections", "300", "--rate", "200", "--for", "1s", "--broadcasts", "2", "--json")
	if r.Code != 0 {
		t.Fatalf("exit code %d: %s", r.Code, r.Err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatalf("%v in %s", err, r.Out)
	}
	for name, want := range map[string]any{"name": "push", "connections": 300.0, "rate_per_s": 200.0, "lost": 0.0, "duplicates": 0.0} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{
		"bytes_per_connection", "goroutines_per_connection", "connect_s", "p50_ms", "p99_ms", "achieved_per_s", "broadcast_ms", "broadcast_deliveries_per_s",
	} {
		if v, ok := got[name].(float64); !ok || v <= 0 {
			t.Errorf("%s: %v", name, got[name])
		}
	}
}

func TestPushBenchSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	if r := proc.Run(t, "bench", "push", "--connections", "0"); r.Code != 2 {
		t.Errorf("exit code %d: %s", r.Code, r.Err)
	}
}
