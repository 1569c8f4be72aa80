package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/lag"
)

func amount[T any](v T) *T { return &v }

// seen is a group in several states, with a past.
func seen() *lag.Snapshot {
	g := lag.Group{
		Name: "billing", Members: amount(2), State: lag.Stalled, Lag: amount(int64(1234)), Seconds: amount(75.25), Exact: true,
		In: amount(3.25), Out: amount(120.0), Drain: amount(10.6),
	}
	for i, n := range []int64{0, 10, 20, 40, 80, 160, 320, 640, 1234} {
		m := lag.Moment{At: time.Unix(int64(i), 0), Lag: amount(n)}
		if i == 4 {
			m.Lag = nil
		}
		g.History = append(g.History, m)
	}
	g.Partitions = []lag.Partition{
		{
			Group: "billing", Topic: "orders.events", Partition: 0, Committed: amount(int64(17)), End: amount(int64(1251)), Ours: true,
			Lag: amount(int64(1234)), Seconds: amount(75.25), Exact: true, In: amount(3.25), Out: new(float64),
			State: lag.Stalled, At: amount(int64(17)), Why: "no movement for 1m5s; key \"k\" waits behind a failing event: no such\naccount",
		},
		{
			Group: "billing", Topic: "orders.events", Partition: 1, Committed: amount(int64(5)), End: amount(int64(9)), Ours: true,
			Lag: amount(int64(4)), Seconds: amount(0.0312), State: lag.OK, In: new(float64), Out: amount(120.0), Drain: amount(0.03),
		},
		{Group: "billing", Topic: "orders.events", Partition: 2, Error: "no leader", State: lag.Unknown, Why: "no leader"},
	}
	return &lag.Snapshot{At: time.Unix(0, 0), Groups: []lag.Group{g}}
}

// golden compares with testdata/name; WAYBILL_GOLDEN=write writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("WAYBILL_GOLDEN") == "write" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v\ngot:\n%s\nwant:\n%s", name, err, got, want)
	}
}

func TestLagAsItIsShown(t *testing.T) {
	var plain, drawn bytes.Buffer
	s := seen()
	if err := showLag(&plain, s, painter{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "lag.txt", plain.String())
	if err := drawLag(&drawn, s, painter{}, false); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(drawn.String(), "\n") // the first line has the time of this machine's zone
	golden(t, "lag_watch.txt", rest)
	if strings.Contains(plain.String()+drawn.String(), "\x1b") {
		t.Error("escapes go to what is no terminal")
	}
}

func TestColourDoesNotMoveTheColumns(t *testing.T) {
	var plain, colour bytes.Buffer
	_ = showLag(&plain, seen(), painter{})
	_ = showLag(&colour, seen(), painter{colour: true})
	bare := colour.String()
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		bare = strings.ReplaceAll(bare, code, "")
	}
	if bare != plain.String() || bare == colour.String() {
		t.Errorf("%q", colour.String())
	}
}

func TestASparklineHasACellForEachPastAndFitsItsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var past []lag.Moment
		for range rapid.IntRange(0, 200).Draw(t, "moments") {
			m := lag.Moment{}
			if rapid.IntRange(0, 5).Draw(t, "unknown") > 0 {
				m.Lag = amount(rapid.Int64Min(0).Draw(t, "lag"))
			}
			past = append(past, m)
		}
		drawn := []rune(spark(past, 40))
		if len(drawn) > 40 || (len(drawn) == 0) != (len(past) == 0) {
			t.Fatalf("%d cells of %d", len(drawn), len(past))
		}
		if n := len(past); n > 0 && n <= 40 && (drawn[n-1] == '·') != (past[n-1].Lag == nil) {
			t.Fatalf("the newest is %c of %+v", drawn[n-1], past[n-1])
		}
	})
}

func TestScaleAsItIsShown(t *testing.T) {
	var out bytes.Buffer
	told := advice{Advice: lag.Advise(&seen().Groups[0], lag.Goal{Workers: 8})}
	if err := table(&out, adviceRows([]advice{told})); err != nil {
		t.Fatal(err)
	}
	golden(t, "scale.txt", out.String())
	// What nobody said is not shown as if it were known.
	for workers, want := range map[int]string{8: "as they are", 12: "12 if there are 8"} {
		a := advice{lag.Advice{Workers: workers}, true}
		if got := adviceRows([]advice{a})[1][3]; got != want {
			t.Errorf("%d: %q, want %q", workers, got, want)
		}
	}
}

func TestScaleRefusesWhatCannotBeMeant(t *testing.T) {
	for _, args := range [][]string{{"--over", "0s"}, {"--min", "3", "--max", "2"}, {"--drain", "-1m"}} {
		if code, _, errOut := command(append([]string{"scale"}, args...)...); code != exitUsage || !strings.Contains(errOut, args[0]) {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
	if code, _, errOut := command("lag", "--over", "-1s"); code != exitUsage || !strings.Contains(errOut, "--over") {
		t.Errorf("%d %s", code, errOut)
	}
}
