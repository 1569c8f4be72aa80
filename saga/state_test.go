package saga

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/saga/contracts"
)

// any instance: events in any number and order, and what deadlines and
// operators may have added.
func anyRecord(t *rapid.T, p *plan) []Entry {
	steps := []string{"none-of-ours"}
	for _, s := range p.Steps {
		steps = append(steps, s.Name)
	}
	var out []Entry
	n := rapid.IntRange(1, 14).Draw(t, "entries")
	for i := range n {
		e := Entry{
			ID: uuid.UUID{15: byte(i)}, What: rapid.SampledFrom(allWhats).Draw(t, "what"),
			SeenAt: noon.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seen")) * time.Millisecond),
			Time:   noon.Add(time.Duration(rapid.IntRange(-50, 900).Draw(t, "time")) * time.Millisecond),
		}
		if i == 0 {
			e.What = Started
		}
		switch e.What {
		case Asked, GaveUp, Skipped:
			e.Direction = rapid.SampledFrom([]Direction{Forward, Back}).Draw(t, "direction")
			fallthrough
		case Done, Failed, Undone:
			e.Step = rapid.SampledFrom(steps).Draw(t, "step")
		case Started, Aborted, Resumed:
		}
		out = append(out, e)
	}
	return out
}

func has(entries []Entry, what What, step string, d Direction) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.What == what && e.Step == step && e.Direction == d })
}

func TestStandingIsAFunctionOfTheSetOfEntries(t *testing.T) {
	p := planOf(trip(time.Second))
	rapid.Check(t, func(t *rapid.T) {
		record := anyRecord(t, &p)
		want := judge(&p, record)
		other := slices.Clone(record)
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(record)-1), 0, 5).Draw(t, "copies") {
			c := record[i]
			if c.IsEvent() { // seen once more, later
				c.SeenAt = c.SeenAt.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "later")) * time.Millisecond)
			}
			other = append(other, c)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if got := judge(&p, other); got != want {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	})
}

// The state does not depend on when events were seen, only deadlines do: that
// is, the order in which topics are read changes nothing in the end.
func TestTheStateDoesNotDependOnTheOrderOfArrival(t *testing.T) {
	p := planOf(trip(time.Second))
	rapid.Check(t, func(t *rapid.T) {
		var events []Entry
		for _, e := range anyRecord(t, &p) {
			if e.IsEvent() {
				events = append(events, e)
			}
		}
		want := judge(&p, events)
		for i := range events {
			events[i].SeenAt = noon.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seen again")) * time.Millisecond)
		}
		got := judge(&p, events)
		if got.State != want.State || got.Step != want.Step || got.Direction != want.Direction || got.Ended != want.Ended {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	})
}

// The states say what they mean, by a definition that is not the program's.
func TestStatesMeanWhatTheySay(t *testing.T) {
	p := planOf(trip(time.Second))
	rapid.Check(t, func(t *rapid.T) {
		record := anyRecord(t, &p)
		s := judge(&p, record)
		turned, forward, undone := false, true, true
		for _, e := range record {
			turned = turned || e.What == Failed || e.What == Undone || e.What == Aborted
		}
		for _, st := range p.Steps {
			done := has(record, Done, st.Name, "")
			forward = forward && (done || has(record, Skipped, st.Name, Forward))
			if done && st.Undo && !has(record, Undone, st.Name, "") && !has(record, Skipped, st.Name, Back) {
				undone = false
			}
		}
		if got, want := s.State == Completed, forward && !turned; got != want {
			t.Fatalf("completed: %v, want %v", got, want)
		}
		if got, want := s.State == Compensated, turned && undone; got != want {
			t.Fatalf("compensated: %v, want %v", got, want)
		}
		if s.State.Ended() != (s.Step == "") || s.State.Ended() == s.Ended.IsZero() {
			t.Fatalf("%+v", s)
		}
		if s.State.Ended() && !s.Due.IsZero() {
			t.Fatalf("something is due of what has ended: %+v", s)
		}
		if !s.State.Ended() && s.State != NeedsOperator && s.Due.IsZero() {
			t.Fatalf("nothing is due of what is open: %+v", s)
		}
		if (s.Direction == Back) != turned {
			t.Fatalf("%+v", s)
		}
	})
}

// Once turned, a saga stays turned, whatever comes.
func TestWhatTurnedBackNeverCompletes(t *testing.T) {
	p := planOf(trip(time.Second))
	rapid.Check(t, func(t *rapid.T) {
		record := append(anyRecord(t, &p), Entry{ID: uuid.UUID{1}, What: Aborted, SeenAt: noon, Time: noon})
		for range p.Steps {
			record = append(record, anyRecord(t, &p)...)
		}
		if s := judge(&p, record); s.State == Completed || s.State == Running {
			t.Fatalf("%+v", s)
		}
	})
}

func TestDeadlines(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	for name, c := range map[string]struct {
		s     *story
		state State
		step  string
		due   time.Time
		asked int
	}{
		"the first step counts from the start": {
			newStory().event(0, "", "a", Started, "", ""), Running, "seat", at(1002 * time.Millisecond), 0,
		},
		"the next one from when the one before was done": {
			newStory().event(0, "", "a", Started, "", "").event(500*time.Millisecond, "", "b", Done, "seat", ""), Running, "charge", at(1502 * time.Millisecond), 0,
		},
		"undoing from the turn": {
			newStory().event(0, "", "b", Done, "seat", "").event(500*time.Millisecond, "", "c", Failed, "charge", ""), Compensating, "seat", at(1502 * time.Millisecond), 0,
		},
		"undoing of the one before from when its turn came": {
			newStory().event(0, "", "b", Done, "seat", "").event(1, "", "c", Done, "charge", "").event(100*time.Millisecond, "", "d", Failed, "mail", "").
				event(700*time.Millisecond, "", "e", Undone, "charge", ""), Compensating, "seat", at(1702 * time.Millisecond), 0,
		},
		"a step that is done after the rest was undone must be undone too": {
			newStory().event(0, "", "b", Done, "seat", "").event(1, "", "c", Aborted, "", "").event(2, "", "d", Undone, "seat", "").
				event(400*time.Millisecond, "", "e", Done, "charge", ""), Compensating, "charge", at(1402 * time.Millisecond), 0,
		},
		"asks are ever further apart": {
			newStory().event(0, "", "a", Started, "", "").ask(1100*time.Millisecond, 0, "seat", Forward, 1).ask(2200*time.Millisecond, 0, "seat", Forward, 2),
			Running, "seat", at(4200 * time.Millisecond), 2,
		},
		"what was given up needs an operator": {
			newStory().event(0, "", "a", Started, "", "").other(9*time.Second, Entry{What: GaveUp, Step: "seat", Direction: Forward}), NeedsOperator, "seat", time.Time{}, 0,
		},
		"what was resumed is due at once": {
			newStory().event(0, "", "a", Started, "", "").ask(1100*time.Millisecond, 0, "seat", Forward, 1).
				other(9*time.Second, Entry{What: GaveUp, Step: "seat", Direction: Forward}).other(99*time.Second, Entry{What: Resumed}),
			Running, "seat", at(99 * time.Second), 0,
		},
		"an event that comes after all needs no operator": {
			newStory().event(0, "", "a", Started, "", "").other(9*time.Second, Entry{What: GaveUp, Step: "seat", Direction: Forward}).
				event(10*time.Second, "", "b", Done, "seat", ""), Running, "charge", at(11002 * time.Millisecond), 0,
		},
	} {
		s := judge(&c.s.p, c.s.entries)
		if s.State != c.state || s.Step != c.step || !s.Due.Equal(c.due) || s.Asked != c.asked {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestAStepMayHaveNoDeadline(t *testing.T) {
	s := trip(time.Second)
	s.Steps[0].Within = -1
	p := planOf(s)
	if st := judge(&p, []Entry{{What: Started, SeenAt: noon, Time: noon}}); st.State != Running || !st.Due.IsZero() {
		t.Errorf("%+v", st)
	}
}

func TestPausesDoubleUpToAnHour(t *testing.T) {
	s := planStep{Pause: time.Minute}
	for n, want := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 6: 32 * time.Minute, 7: time.Hour, 5000: time.Hour} {
		if got := s.pauseAfter(n); got != want {
			t.Errorf("after ask %d: %s, want %s", n, got, want)
		}
	}
}

func TestUnsoundSagasAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Saga){
		"what an observer publishes": func(s *Saga) { s.Steps[0].Failed = On[contracts.StepOverdue]() },
		"two steps seat":             func(s *Saga) { s.Steps[1].Name = "seat" },
		"give Done":                  func(s *Saga) { s.Steps[2].Done = nil },
		"give Start":                 func(s *Saga) { s.Start = nil },
		"want 1 to 50":               func(s *Saga) { s.Steps = nil },
		"lower-case letters":         func(s *Saga) { s.Name = "Book trip" },
		"step \"the_seat\"":          func(s *Saga) { s.Steps[0].Name = "the_seat" },
		"is declared twice":          func(s *Saga) { s.Name = "twice" },
		"dependency is missi":        func(s *Saga) { s.Name = "no-deps" },
	} {
		s := trip(0)
		change(&s)
		sagas := []Saga{s}
		deps := someDeps
		switch s.Name {
		case "twice":
			sagas = append(sagas, s)
		case "no-deps":
			deps = Deps{}
		}
		if _, err := New(deps, Config{}, sagas...); err == nil || !contains(err, want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := New(someDeps, Config{}); err == nil {
		t.Error("no saga was accepted")
	}
}
