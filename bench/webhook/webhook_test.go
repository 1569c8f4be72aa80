package webhook_test

import (
	"encoding/json"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

func TestWebhookBenchMeasuresAndEveryEventIsReceived(t *testing.T) {
	t.Parallel()
	r := proc.Run(t, "bench", "webhook", "--events", "1500", "--tenants", "10", "--rate", "100", "--for", "1s", "--rounds", "1", "--json")
	if r.Code != 0 {
		t.Fatalf("exit code %d: %s", r.Code, r.Err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatalf("%v in %s", err, r.Out)
	}
	for name, want := range map[string]any{"name": "webhook", "events": 1500.0, "tenants": 10.0, "rate_per_s": 100.0, "rounds": 1.0, "lost": 0.0} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"events_per_s", "sent_per_s", "p50_ms", "p99_ms", "stalled_p50_ms", "stalled_p99_ms", "healthy_p99_ratio", "stalled_calls"} {
		if v, ok := got[name].(float64); !ok || v <= 0 {
			t.Errorf("%s: %v", name, got[name])
		}
	}
}

func TestWebhookBenchSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	if r := proc.Run(t, "bench", "webhook", "--tenants", "0"); r.Code != 2 {
		t.Errorf("exit code %d: %s", r.Code, r.Err)
	}
}
