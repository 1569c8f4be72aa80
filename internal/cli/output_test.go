package cli

import (
	"strings"
	"testing"
)

func TestNoLineOfATableEndsInBlanks(t *testing.T) {
	var out strings.Builder
	if err := table(&out, [][]string{{"archived", "2026-01-01", "5 events"}, {"left", "", ""}, nil, {"stays", "x", "why"}}); err != nil {
		t.Fatal(err)
	}
	const want = `archived  2026-01-01  5 events
left

stays  x  why
`
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}

func TestOneThingIsTold(t *testing.T) {
	for n, want := range map[int64]string{0: "0 events", 1: "1 event", 2: "2 events"} {
		if got := plural(n, "event"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
