package orders

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// world is an order as settle sees it, without a database.
type world struct {
	state          State
	attempt, first int
	known          map[int]facts
}

type arrival struct {
	attempt int
	fact    string
}

func (w *world) hear(t *rapid.T, a arrival, attempts int) {
	f := w.known[a.attempt]
	switch a.fact {
	case "reserved":
		f.reserved = true
	case "notified":
		f.notified = true
	case "voided":
		f.voided = true
	case "released":
		f.released = true
	case "failed":
		f.failed = true
	}
	w.known[a.attempt] = f
	for {
		before := w.attempt
		for _, m := range settle(w.state, w.known[w.attempt], w.attempt-w.first+1 >= attempts) {
			if err := guard(w.state, m); err != nil {
				t.Fatalf("settle asks for what is forbidden: %v", err)
			}
			if w.state = m.To; m.To == Created {
				w.attempt++
			}
		}
		if f := w.known[w.attempt]; w.state == Assigned && (f.released || !f.reserved || !f.notified) {
			t.Fatalf("assigned knowing %+v", f)
		}
		if w.attempt == before {
			return
		}
	}
}

// endings are all that can become of an attempt, each with the facts that other
// modules tell of it, and where it leaves the order.
var endings = map[string]struct {
	facts []string
	next  bool // another attempt follows
	state State
}{
	"waits":              {nil, false, Created},
	"nobody":             {[]string{"failed"}, false, Unassignable},
	"reserved":           {[]string{"reserved"}, false, Assigning},
	"assigned":           {[]string{"reserved", "notified"}, false, Assigned},
	"fee failed":         {[]string{"reserved", "released"}, true, ""},
	"not notified":       {[]string{"reserved", "voided", "released"}, true, ""},
	"declined later":     {[]string{"reserved", "notified", "released", "voided"}, true, ""},
	"declined, no void":  {[]string{"reserved", "notified", "released"}, true, ""},
	"notice was on time": {[]string{"reserved", "released", "notified"}, true, ""},
}

func TestAnyOrderOfArrivalEndsTheSame(t *testing.T) {
	names := make([]string, 0, len(endings))
	for name := range endings {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		attempts := rapid.IntRange(1, 4).Draw(t, "attempts allowed")
		var told []arrival
		var want State
		attempt := 1
		for ; ; attempt++ {
			end := endings[rapid.SampledFrom(names).Draw(t, "ending")]
			for _, f := range end.facts {
				told = append(told, arrival{attempt, f})
			}
			if want = end.state; !end.next {
				break
			}
			if attempt == attempts {
				want = Unassignable
				break
			}
		}
		for _, again := range rapid.SliceOfN(rapid.IntRange(0, 100), 0, 5).Draw(t, "repeated") {
			if len(told) > 0 {
				told = append(told, told[again%len(told)])
			}
		}
		w := world{state: Created, attempt: 1, first: 1, known: map[int]facts{}}
		for _, a := range rapid.Permutation(told).Draw(t, "arrivals") {
			w.hear(t, a, attempts)
		}
		if w.state != want || w.attempt != attempt {
			t.Fatalf("ends %s in attempt %d, want %s in %d, after %v", w.state, w.attempt, want, attempt, told)
		}
	})
}

// Whatever a person does in between has the last word, and nothing that arrives
// afterwards moves what has ended or what somebody holds.
func TestWhatArrivesLateMovesNothingThatIsOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom([]State{
			Unassignable, PickedUp, DeliveryOngoing, ArrivedAtCustomer, Delivered, Cancelled, Failed, Returning, Returned,
		}).Draw(t, "state")
		b := rapid.Bool()
		f := facts{
			reserved: b.Draw(t, "reserved"), notified: b.Draw(t, "notified"), voided: b.Draw(t, "voided"),
			released: b.Draw(t, "released"), failed: b.Draw(t, "failed"),
		}
		if moves := settle(at, f, b.Draw(t, "last")); len(moves) != 0 {
			t.Fatalf("%s with %+v: %v", at, f, moves)
		}
	})
}

func TestSettlingAsksOnlyForWhatTheSystemMayDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom(States()).Draw(t, "state")
		b := rapid.Bool()
		f := facts{b.Draw(t, "r"), b.Draw(t, "n"), b.Draw(t, "v"), b.Draw(t, "l"), b.Draw(t, "f"), "why"}
		for _, m := range settle(at, f, b.Draw(t, "last")) {
			if m.Actor != System {
				t.Fatalf("moves as %s", m.Actor)
			}
			if err := guard(at, m); err != nil {
				t.Fatal(err)
			}
			at = m.To
		}
	})
}
