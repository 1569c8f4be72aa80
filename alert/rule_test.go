package alert

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func amount[T any](v T) *T { return &v }

func rule(t testing.TB, sentence string) Rule {
	t.Helper()
	r, err := Parse(sentence)
	if err != nil {
		t.Fatalf("%q: %v", sentence, err)
	}
	r.Name, r.Severity = "r", "warning"
	return r
}

func TestSentencesMeanWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		sentence    string
		reading     Reading
		want        verdict
		hold, clear time.Duration
	}{
		{"time lag > 30s for 1m and not draining", Reading{Seconds: amount(31.0), Draining: amount(false)}, yes, time.Minute, time.Minute},
		{"time lag > 30s for 1m and not draining", Reading{Seconds: amount(31.0), Draining: amount(true)}, no, time.Minute, time.Minute},
		{"time lag > 30s for 1m and not draining", Reading{Seconds: amount(31.0)}, unknown, time.Minute, time.Minute},
		{"time lag > 30s", Reading{Seconds: amount(2.0), Partial: true}, unknown, 0, time.Minute},
		{"time lag > 30s", Reading{Seconds: amount(31.0), Partial: true}, yes, 0, time.Minute},
		{"time lag > 30s", Reading{}, unknown, 0, time.Minute},
		{"events > 10 clear for 10m", Reading{Events: amount(int64(11))}, yes, 0, 10 * time.Minute},
		{"Events>10", Reading{Events: amount(int64(10))}, no, 0, time.Minute},
		{"events < 10 for 90s", Reading{Events: amount(int64(9))}, yes, 90 * time.Second, time.Minute},
		{"stalled", Reading{Known: true, Stalled: true}, yes, 0, time.Minute},
		{"stalled", Reading{}, unknown, 0, time.Minute},
		{"not stalled", Reading{Known: true}, yes, 0, time.Minute},
		{"no members for 1d", Reading{Members: new(int), Events: amount(int64(1))}, yes, 24 * time.Hour, time.Minute},
		{"no members", Reading{Members: new(int), Events: new(int64)}, no, 0, time.Minute},
		{"no members", Reading{}, unknown, 0, time.Minute},
		{"parked keys > 0 and retention and rewound", Reading{ParkedKeys: amount(int64(1)), Overtaken: true, Rewound: true}, yes, 0, time.Minute},
		{"unknown for 5m", Reading{}, yes, 5 * time.Minute, time.Minute},
	} {
		r := rule(t, c.sentence)
		if got := r.holds(&c.reading, false); got != c.want || r.hold != c.hold || r.clear != c.clear {
			t.Errorf("%q of %+v: %v for %s clear %s", c.sentence, c.reading, got, r.hold, r.clear)
		}
	}
	r := rule(t, "99.9% of the time under 30s over 30d")
	if o := r.objective; o == nil || o.Under != 30*time.Second || o.Window != 720*time.Hour || o.Share < 0.9989 || o.Share > 0.9991 {
		t.Errorf("%+v", o)
	}
}

func TestDefaultsAreUnderstoodAndNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Defaults() {
		if r.Name == "" || r.Severity == "" || seen[r.Name] {
			t.Errorf("%+v", r)
		}
		seen[r.Name] = true
	}
}

func TestWhatIsNotUnderstoodSaysWhereAndWhatWasExpected(t *testing.T) {
	for sentence, want := range map[string]struct {
		column int
		say    string
	}{
		"":                                   {1, "a condition"},
		"time lag":                           {9, "> or <"},
		"time lag > 30":                      {12, "unit"},
		"time lag > -3s":                     {12, "above zero"},
		"time lag > 30s for":                 {19, "unit"},
		"time lag > 30s for 1m for 2m":       {23, `"and", "clear for", or the end`},
		"events > many":                      {10, "a number"},
		"stalled and":                        {12, "a condition"},
		"stalled or rewound":                 {9, `"and", "for"`},
		"no member":                          {1, "no members"},
		"100% of the time under 30s over 1d": {1, "below 100%"},
		"99% of time under 30s over 1d":      {5, `"of the time under"`},
		"99% of the time under 30s over 1m":  {32, "an hour"},
		"99% of the time under 30s":          {26, `"over"`},
		"99% of the time under 30s over 30d and stalled": {36, "the end"},
		strings.Repeat("stalled and ", 200):              {1025, "at most 1024 bytes"},
	} {
		_, err := Parse(sentence)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Column != want.column || !strings.Contains(err.Error(), want.say) {
			t.Errorf("%q: %v, want column %d and %s", sentence, err, want.column, want.say)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"time lag > 30s for 1m and not draining", "events > 5 clear for 2h", "dead letters grow",
		"99% of the time under 30s over 30d", "no members for 1m", "not \xff", "time lag > 9999999999999h",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Parse(s)
		var syntax *SyntaxError
		switch {
		case errors.As(err, &syntax):
			if syntax.Column < 1 || syntax.Column > len(s)+1 || syntax.Want == "" || len(err.Error()) > 1024 {
				t.Errorf("%q: %+v", s, syntax)
			}
		case err != nil:
			t.Errorf("%q: %T", s, err)
		case (len(r.terms) == 0) == (r.objective == nil) || r.hold < 0 || r.clear <= 0:
			t.Errorf("%q: %+v", s, r)
		default:
			r.holds(&Reading{}, false)
		}
	})
}

// feed holds a rule against readings a second apart and returns the changes,
// by second.
func feed(w *watch, from time.Time, readings []Reading) (out []string) {
	for i, r := range readings {
		r.Group = "g"
		for _, c := range w.see(from.Add(time.Duration(i)*time.Second), []Reading{r}) {
			out = append(out, map[bool]string{true: "fires", false: "clears"}[c.firing]+" at "+(time.Duration(i)*time.Second).String())
		}
	}
	return out
}

func repeat(n int, r Reading) (out []Reading) {
	for range n {
		out = append(out, r)
	}
	return out
}

func TestARuleFiresOnceAndClearsWithHysteresis(t *testing.T) {
	high, low, dark := Reading{Events: amount(int64(9)), Known: true}, Reading{Events: new(int64), Known: true}, Reading{}
	for name, c := range map[string]struct {
		readings []Reading
		want     string
	}{
		"once, and clears":             {slicesOf(repeat(20, high), repeat(40, low)), "fires at 10s, clears at 50s"},
		"not for a short while":        {slicesOf(repeat(9, high), repeat(5, low), repeat(9, high), repeat(60, low)), ""},
		"does not clear by a flicker":  {slicesOf(repeat(20, high), repeat(29, low), repeat(1, high), repeat(29, low), repeat(3, high)), "fires at 10s"},
		"unknown neither fires":        {slicesOf(repeat(9, high), repeat(60, dark)), ""},
		"nor clears":                   {slicesOf(repeat(20, high), repeat(90, dark)), "fires at 10s"},
		"and its time counts for none": {slicesOf(repeat(9, high), repeat(9, dark), repeat(9, high)), ""},
	} {
		w := newWatch(rule(t, "events > 5 for 10s clear for 30s"))
		if got := strings.Join(feed(w, time.Unix(0, 0), c.readings), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func slicesOf(parts ...[]Reading) (out []Reading) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func TestFiringsAndClearingsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, _ := Parse("events > 5 for 3s clear for 2s")
		w := newWatch(r)
		now, firing := time.Unix(0, 0), false
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "dt")) * time.Second)
			reading := Reading{Group: "g", Known: true}
			if rapid.Bool().Draw(t, "known") {
				reading.Events = amount(rapid.Int64Range(0, 10).Draw(t, "events"))
			}
			var all []Reading
			if rapid.IntRange(0, 9).Draw(t, "there") > 0 {
				all = []Reading{reading}
			}
			for _, c := range w.see(now, all) {
				if c.firing == firing {
					t.Fatalf("%v twice", firing)
				}
				firing = c.firing
			}
		}
	})
}

func TestDeadLettersThatGrowAreTold(t *testing.T) {
	w := newWatch(rule(t, "dead letters grow"))
	n := func(n int64) Reading { return Reading{Known: true, DeadLetters: amount(n)} }
	if got := feed(w, time.Unix(0, 0), []Reading{n(7), n(7), n(8), n(8)}); strings.Join(got, ", ") != "fires at 2s" {
		t.Error(got)
	}
	first := newWatch(rule(t, "dead letters grow"))
	if got := feed(first, time.Unix(0, 0), []Reading{{Known: true}, {Known: true}, n(1)}); strings.Join(got, ", ") != "fires at 2s" {
		t.Errorf("the first ever: %v", got)
	}
}

// An objective of a day under 30 s: its fast pair is two minutes and ten
// seconds, its slow one twelve minutes and one.
func TestABudgetThatBurnsTooFastFires(t *testing.T) {
	late, well := Reading{Seconds: amount(60.0), Known: true}, Reading{Seconds: new(float64), Known: true}
	const sentence = "99% of the time under 30s over 1d"
	if got := feed(newWatch(rule(t, sentence)), time.Unix(0, 0), slicesOf(repeat(600, well), repeat(30, late), repeat(900, well))); len(got) != 2 || got[0] != "fires at 10m17s" {
		t.Errorf("half a minute late: %v", got)
	}
	if got := feed(newWatch(rule(t, sentence)), time.Unix(0, 0), slicesOf(repeat(600, well), repeat(5, late), repeat(900, well))); len(got) != 0 {
		t.Errorf("some seconds late: %v", got)
	}
	// One second in twelve, for long: too slow for the fast pair.
	var slow []Reading
	for range 120 {
		slow = append(slow, slicesOf(repeat(11, well), repeat(1, late))...)
	}
	if got := feed(newWatch(rule(t, sentence)), time.Unix(0, 0), slow); len(got) != 1 {
		t.Errorf("a little late for long: %v", got)
	}
	if got := feed(newWatch(rule(t, sentence)), time.Unix(0, 0), repeat(3000, Reading{})); len(got) != 0 {
		t.Errorf("nothing known: %v", got)
	}
}
