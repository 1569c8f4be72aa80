package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/lag"
)

func TestAMessageALineAndNoneLost(t *testing.T) {
	next := lines(strings.NewReader("one\r\n\n  two  \nthree"))
	var got []string
	for {
		m, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(m))
	}
	if want := []string{"one", "", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestInputIsBounded(t *testing.T) {
	next := lines(io.MultiReader(strings.NewReader("one\n"), endless{}))
	if m, err := next(); err != nil || string(m) != "one" {
		t.Fatal(m, err)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "larger than 8.0 MiB") {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestUnknownIsNeverShownAsZero(t *testing.T) {
	zero := int64(0)
	none := 0.0
	rows := lagRows([]lag.Partition{
		{Group: "g", Topic: "t", State: lag.Unknown},
		{Group: "g", Topic: "t", Committed: &zero, End: &zero, Lag: &zero, Seconds: &none, Exact: true, In: &none, Out: &none, Drain: &none, State: lag.OK},
		{Group: "g", Topic: "t", Ours: true, State: lag.Unknown},
	}, painter{})
	for i, want := range [][]string{
		{"none", "unknown", "unknown", "unknown", "unknown", "unknown", "unknown", "unknown"},
		{"0", "0", "0", "0s", "0", "0", "-", "ok"},
		{"unknown", "unknown", "unknown", "unknown", "unknown", "unknown", "unknown", "unknown"},
	} {
		if got := rows[i+1][3:]; !slices.Equal(got, want) {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
	if s := statusText(app.Stats{}, app.Stats{}); !strings.Contains(s, "lag unknown") || !strings.Contains(s, "none yet") {
		t.Error(s)
	}
	if topics := topicRows([]broker.TopicInfo{{Name: "t", Partitions: 1}}); !slices.Equal(topics[1][2:], []string{"unknown", "", "unknown", "unknown"}) {
		t.Errorf("%q", topics[1])
	}
}

func TestSizesAndDurationsAreReadable(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB", math.MaxInt64: "8192.0 PiB",
	} {
		if got := size(bytes); got != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-1: "for ever", 0: "0s", 1500 * time.Microsecond: "1.5ms", 90 * time.Second: "1m30s", 7 * 24 * time.Hour: "7 d",
		5 * time.Minute: "5m", 24 * time.Hour: "24h", 2*time.Hour + time.Minute: "2h1m", 10 * time.Hour: "10h", time.Hour + time.Second: "1h0m1s",
	} {
		if got := duration(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

// Whoever adds a command gets the same: JSON where data is printed, help that
// says what it is for, and a check of the arguments.
func TestEveryCommandIsWhole(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: want one line of help without a stop, not %q", c.CommandPath(), c.Short)
		}
		if c.RunE == nil {
			t.Errorf("%s runs nothing", c.CommandPath())
		}
		if c.Args == nil && !strings.Contains(c.Use, "...") {
			t.Errorf("%s takes any arguments and does not say so", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

func TestUsageSurvivesWrapping(t *testing.T) {
	var usage usageError
	if err := fmt.Errorf("message 3: %w", usagef("--header %q", "x")); !errors.As(err, &usage) {
		t.Error("a mistake of the caller is taken for a failure")
	}
}
