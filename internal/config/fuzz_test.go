package config

import (
	"strings"
	"testing"
)

// FuzzFile claims that any file is read or refused, in the file's words.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"", "kafka: {brokers: [a:1], tls: {}}", "kafka: 3", "scale: {workers: {min: 1, max: 4, every: 15s}, groups: {a: {drain: 1m}}}",
		"outbox: {max_wal: 8GiB, keep_days: 3}", "alerts: {rules: [{name: a, when: time lag > 2m for 5m}], webhook: {url: http://x}}",
		"queue: {queues: [{name: a, lease: 1m}], feeds: [{queue: a, topic: b}]}", "cdc: {tables: [a]}", "a: &a [*a]", "lag: {every: 1x}", "? [a]\n: b", "<<: {}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := parse(text)
		if err != nil {
			for _, never := range []string{"struct {", "config.", "into *"} {
				if strings.Contains(err.Error(), never) && !strings.Contains(string(text), strings.TrimSpace(never)) {
					t.Errorf("it says %s: %v", never, err)
				}
			}
			return
		}
		c := Default()
		c.Outbox, c.CDC, c.Queue, c.Lag, c.Alerts, c.Scale = in.Outbox, in.CDC, in.Queue, in.Lag, in.Alerts, in.Scale
		_ = c.Check()
	})
}
