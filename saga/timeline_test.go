package saga

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// story makes an instance's record, entry by entry.
type story struct {
	p       plan
	entries []Entry
	ids     map[string]uuid.UUID
}

func newStory() *story {
	return &story{p: planOf(trip(time.Second)), ids: map[string]uuid.UUID{}}
}

func (s *story) event(after time.Duration, source, typ string, what What, step, cause string) *story {
	id, known := s.ids[typ]
	if !known {
		id = uuid.UUID{15: byte(len(s.ids) + 1)}
	}
	s.ids[typ] = id
	e := Entry{ID: id, What: what, Step: step, Source: source, Type: "travel." + typ, Time: noon.Add(after), SeenAt: noon.Add(after + 2*time.Millisecond)}
	if cause != "" {
		e.CausationID = s.ids[cause].String()
	}
	s.entries = append(s.entries, e)
	return s
}

func (s *story) other(after time.Duration, e Entry) *story {
	e.ID = uuid.UUID{14: 1, 15: byte(len(s.entries))}
	e.Time, e.SeenAt = noon.Add(after), noon.Add(after)
	s.entries = append(s.entries, e)
	return s
}

func (s *story) ask(after, due time.Duration, step string, d Direction, n int) *story {
	at := noon.Add(due)
	return s.other(after, Entry{What: Asked, Step: step, Direction: d, Asked: n, DueAt: &at})
}

func (s *story) detail(key string, round int) Detail {
	st := judge(&s.p, s.entries)
	d := Detail{
		Instance: Instance{
			Ref: Ref{"t1", s.p.Name, key, round}, State: st.State, Step: st.Step, Direction: st.Direction, Asked: st.Asked,
			DueAt: orNull(st.Due), StartedAt: st.Started, EndedAt: orNull(st.Ended),
		},
		Steps: stepsOf(&s.p, s.entries), Entries: s.entries,
	}
	if !st.State.Ended() {
		d.Since = orNull(st.Since)
	}
	return d
}

func booked() *story {
	return newStory().
		event(0, "/trips", "TripRequested", Started, "", "").
		event(12*time.Millisecond, "/seats", "SeatTaken", Done, "seat", "TripRequested").
		event(31*time.Millisecond, "/bank", "CardCharged", Done, "charge", "SeatTaken").
		event(1042*time.Millisecond, "/mail", "TicketMailed", Done, "mail", "CardCharged")
}

// undoing fails at the mail, and the seat is not given back.
func undoing() *story {
	return newStory().
		event(0, "/trips", "TripRequested", Started, "", "").
		event(12*time.Millisecond, "/seats", "SeatTaken", Done, "seat", "TripRequested").
		event(31*time.Millisecond, "/bank", "CardCharged", Done, "charge", "SeatTaken").
		event(1042*time.Millisecond, "/mail", "MailRefused", Failed, "mail", "CardCharged").
		event(1060*time.Millisecond, "/bank", "CardRefunded", Undone, "charge", "MailRefused").
		ask(2100*time.Millisecond, 2062*time.Millisecond, "seat", Back, 1).
		ask(3200*time.Millisecond, 3100*time.Millisecond, "seat", Back, 2).
		ask(5300*time.Millisecond, 5200*time.Millisecond, "seat", Back, 3).
		other(9400*time.Millisecond, Entry{What: GaveUp, Step: "seat", Direction: Back, Asked: 3})
}

func TestTimelines(t *testing.T) {
	far := newStory().event(0, "/a-service-with-a-very-long-name-of-its-own", "AnEventWhoseNameIsLongerThanItsColumn", Started, "", "").
		event(-30*time.Millisecond, "/seats", "SeatTaken\x1b[2J", Done, "seat", "AnEventWhoseNameIsLongerThanItsColumn").
		event(50*time.Hour, "/trips", "TripCancelled", Aborted, "", "AnEventWhoseNameIsLongerThanItsColumn").
		event(50*time.Hour, "/trips", "TripCancelled", Failed, "mail", "AnEventWhoseNameIsLongerThanItsColumn").
		other(51*time.Hour, Entry{What: Skipped, Step: "seat", Direction: Back, By: "rui", Reason: "the carrier has gone out of business, there is no seat any more that anybody could give back to it"})
	resumed := undoing().
		other(125*time.Second, Entry{What: Resumed, By: "ana", Reason: "seats are up again"}).
		ask(125400*time.Millisecond, 125*time.Second, "seat", Back, 1).
		event(125420*time.Millisecond, "/seats", "SeatFreed", Undone, "seat", "StepOverdue")
	told := uuid.UUID{15: 200}
	resumed.entries[len(resumed.entries)-2].ToldAs, resumed.entries[len(resumed.entries)-1].CausationID = &told, told.String()
	overdue := newStory().event(0, "/trips", "TripRequested", Started, "", "").
		event(12*time.Millisecond, "/seats", "SeatTaken", Done, "seat", "TripRequested").
		ask(1100*time.Millisecond, 1014*time.Millisecond, "charge", Forward, 1)
	for name, d := range map[string]Detail{
		"completed": booked().detail("trip-7", 1), "needs-operator": undoing().detail("trip-7", 2),
		"resumed": resumed.detail("trip-7", 2), "overdue": overdue.detail("trip-8", 1), "far": far.detail("trip-9", 1),
	} {
		t.Run(name, func(t *testing.T) {
			got := Timeline(d, noon.Add(125*time.Second))
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Whatever is in the record, no line is wider than a terminal, and nothing
// commands it.
func TestATimelineFitsItsTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Detail{Instance: Instance{Ref: Ref{Saga: "trip", Key: rapid.StringN(0, 40, 60).Draw(t, "key"), Round: 1}, State: Running, StartedAt: noon}}
		for i := range rapid.IntRange(0, 12).Draw(t, "entries") {
			d.Entries = append(d.Entries, Entry{
				ID: uuid.UUID{15: byte(i)}, What: rapid.SampledFrom(allWhats).Draw(t, "what"), Step: rapid.StringN(0, 60, 60).Draw(t, "step"),
				Type: rapid.String().Draw(t, "type"), Source: rapid.String().Draw(t, "source"), By: rapid.String().Draw(t, "by"), Reason: rapid.String().Draw(t, "reason"),
				Time: noon.Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "time"))),
			})
		}
		for l := range strings.Lines(Timeline(d, noon)) {
			if l = strings.TrimSuffix(l, "\n"); count(l) > width || strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x9b }) {
				t.Fatalf("%d columns: %q", count(l), l)
			}
		}
	})
}

var allWhats = []What{Started, Done, Failed, Undone, Aborted, Asked, GaveUp, Resumed, Skipped}
