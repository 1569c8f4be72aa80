package config

import (
	"strings"
	"testing"
)

func TestBudgetsOfTheOutboxAreRead(t *testing.T) {
	alone(t)
	for text, want := range map[string]Size{
		"8GiB": 8 << 30, "8 GiB": 8 << 30, "500MB": 500_000_000, "1048576": 1 << 20, "1.5GiB": 3 << 29,
	} {
		c, err := read(t, "outbox: {max_backlog: 200_000, max_wal: "+text+"}")
		if err != nil || c.Outbox.MaxWAL != want || c.Outbox.MaxBacklog != 200_000 || c.Check() != nil {
			t.Errorf("%s: %v %+v", text, err, c.Outbox)
		}
	}
	for _, text := range []string{"-1", "0", "much", "8GiB of it", "[1]", "9999999999GiB", "''"} {
		if _, err := read(t, "outbox: {max_wal: "+text+"}"); err == nil || !strings.Contains(err.Error(), "8GiB") {
			t.Errorf("%s: %v", text, err)
		}
	}
	small, err := read(t, "outbox: {max_wal: 8}")
	if err != nil {
		t.Fatal(err)
	}
	if err := small.Check(); err == nil || !strings.Contains(err.Error(), "8GiB") {
		t.Error(err)
	}
	c, err := read(t, "outbox: {max_backlog: -5}")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "outbox.max_backlog") {
		t.Error(err)
	}
}
