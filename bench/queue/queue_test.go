package queue_test

import (
	"encoding/json"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

func TestQueueBenchMeasuresAndEveryMessageComesOnce(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"alone": nil, "beside a transaction held open": {"--held"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// 2050 is no whole number of batches: the last one is full all the same.
			r := proc.Run(t, append([]string{"bench", "queue", "--messages", "2050", "--batch", "100", "--workers", "3", "--body", "50", "--json"}, more...)...)
			if r.Code != 0 {
				t.Fatalf("exit code %d: %s", r.Code, r.Err)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
				t.Fatalf("%v in %s", err, r.Out)
			}
			for name, want := range map[string]any{
				"name": "queue", "events": 2050.0, "batch": 100.0, "workers": 3.0, "body_bytes": 50.0, "held_transaction": len(more) > 0,
				"lost": 0.0, "duplicates": 0.0,
			} {
				if got[name] != want {
					t.Errorf("%s: %v, want %v", name, got[name], want)
				}
			}
			for _, name := range []string{
				"send_events_per_s", "events_per_s", "limit_send_events_per_s", "limit_events_per_s", "ratio", "p50_ms", "p99_ms", "table_mb", "last_tenth_ratio",
			} {
				if v, ok := got[name].(float64); !ok || v <= 0 {
					t.Errorf("%s: %v", name, got[name])
				}
			}
		})
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--messages", "99"}, {"--batch", "1001"}, {"--workers", "0"}, {"--body", "-1"}} {
		if r := proc.Run(t, append([]string{"bench", "queue"}, args...)...); r.Code != 2 || r.Err == "" {
			t.Errorf("%v: exit code %d, %s", args, r.Code, r.Err)
		}
	}
}
