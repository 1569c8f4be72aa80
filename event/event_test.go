package event_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
)

type header struct{ name, value string }

func headers(e *event.Envelope) (out []header) {
	e.Headers(func(name, value string) { out = append(out, header{name, value}) })
	return out
}

func read(hs []header, at time.Time) (event.Envelope, error) {
	return event.ReadHeaders(len(hs), func(i int) (string, []byte) {
		return hs[i].name, []byte(hs[i].value)
	}, at, "things[0]@7")
}

func TestEnvelopeSurvivesHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := event.Envelope{
			ID: event.NewID(), Source: rapid.String().Draw(t, "source"), Type: rapid.String().Draw(t, "type"),
			Subject: rapid.String().Draw(t, "subject"), Tenant: rapid.String().Draw(t, "tenant"),
			Time:          time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
			Sequence:      rapid.Int64().Draw(t, "sequence"),
			CorrelationID: rapid.String().Draw(t, "correlation"), CausationID: rapid.String().Draw(t, "causation"),
			TraceParent: rapid.String().Draw(t, "trace"),
		}
		got, err := read(headers(&want), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	})
}

func TestStrangersGetTheSameIDEachTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, hs := range map[string][]header{
		"an id that is no UUID":   {{"ce_id", "order-17"}, {"ce_source", "/shop"}},
		"a UUID without time":     {{"ce_id", "6b0a9c55-7d0e-4d0b-9d9c-0f3f6a1c2b3d"}, {"ce_source", "/shop"}},
		"no id at all":            {},
		"headers of another kind": {{"x", "y"}},
	} {
		a, err := read(hs, at)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, _ := read(hs, at)
		if a.ID == uuid.Nil || a.ID != b.ID {
			t.Errorf("%s: ids %s and %s", name, a.ID, b.ID)
		}
		if got := event.IDTime(a.ID); !got.Equal(at) {
			t.Errorf("%s: id tells %s, want %s", name, got, at)
		}
	}
	a, _ := read([]header{{"ce_id", "1"}, {"ce_source", "/a"}}, at)
	b, _ := read([]header{{"ce_id", "1"}, {"ce_source", "/b"}}, at)
	if a.ID == b.ID {
		t.Error("two sources share an id")
	}
}

func TestUnreadableHeaderIsNamed(t *testing.T) {
	for _, h := range []header{{"ce_time", "yesterday"}, {"ce_sequence", "two"}, {"ce_specversion", "0.3"}} {
		if _, err := read([]header{h}, time.Now()); err == nil {
			t.Errorf("%v was taken", h)
		}
		h.value = strings.Repeat(h.value, 10_000)
		if _, err := read([]header{h}, time.Now()); err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: an error of %d bytes", h.name, len(err.Error()))
		}
	}
}

func TestIDsAscendAndBoundTheirDay(t *testing.T) {
	last := event.NewID()
	for range 10_000 {
		id := event.NewID()
		if id.String() <= last.String() {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	now := time.Now()
	if floor := event.IDFloor(now.Add(-time.Second)); floor.String() >= last.String() {
		t.Errorf("floor %s is not below %s", floor, last)
	}
	if next := event.IDFloor(now.Add(time.Second)); next.String() <= last.String() {
		t.Errorf("floor %s is not above %s", next, last)
	}
}

// thing is the event of these tests.
type thing struct {
	contract *event.Contract
	id       string
	version  int64
}

func (t thing) EventContract() *event.Contract { return t.contract }
func (t thing) EventKey() string               { return t.id }
func (t thing) EventSequence() int64           { return t.version }

const thingSchema = `{"type":"record","name":"Thing","namespace":"test","fields":[]}`

func TestCausesAreInherited(t *testing.T) {
	c := event.MustContract("things", "/test", thingSchema)
	ctx := event.WithRequest(event.WithTenant(context.Background(), "t1"), "req-9", "00-trace")
	first := c.Envelope(ctx, thing{c, "a", 1}, time.Now())
	if first.CorrelationID != "req-9" || first.CausationID != "req-9" || first.Tenant != "t1" || first.TraceParent != "00-trace" {
		t.Fatalf("first %+v", first)
	}
	second := c.Envelope(event.WithCause(context.Background(), &first), thing{c, "b", 1}, time.Now())
	if second.CorrelationID != "req-9" || second.CausationID != first.ID.String() || second.Tenant != "t1" {
		t.Fatalf("second %+v", second)
	}
	alone := c.Envelope(context.Background(), thing{c, "c", 1}, time.Now())
	if alone.CorrelationID != alone.ID.String() || alone.CausationID != "" || alone.Tenant != "" {
		t.Fatalf("alone %+v", alone)
	}
}

func TestContractNamesItsSubjectAndItsExactText(t *testing.T) {
	a := event.MustContract("things", "/test", `{"type":"record","name":"Thing","namespace":"test","fields":[{"name":"n","type":"int","default":1}]}`)
	b := event.MustContract("things", "/test", `{"type":"record","name":"Thing","namespace":"test","fields":[{"name":"n","type":"int","default":2}]}`)
	if a.Subject() != "things-test.Thing" || a.Type != "test.Thing" {
		t.Errorf("subject %s, type %s", a.Subject(), a.Type)
	}
	if a.Fingerprint == b.Fingerprint {
		t.Error("two defaults, one fingerprint")
	}
}

func TestContractMustBeARecord(t *testing.T) {
	for _, schema := range []string{`"string"`, `{"type":"record"}`, `nonsense`} {
		if _, err := event.NewContract("things", "/test", schema); err == nil {
			t.Errorf("%s was taken", schema)
		}
	}
	defer func() {
		if err, _ := recover().(error); err == nil || errors.Unwrap(err) == nil {
			t.Errorf("MustContract did not panic with its reason: %v", err)
		}
	}()
	event.MustContract("things", "/test", `nonsense`)
}

func FuzzReadHeaders(f *testing.F) {
	f.Add("ce_id", "x", "ce_time", "2026-01-01T00:00:00Z")
	f.Add("ce_sequence", "-1", "ce_specversion", "1.0")
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2 string) {
		e, err := read([]header{{n1, v1}, {n2, v2}}, time.Unix(1, 0))
		if err == nil && e.ID == uuid.Nil {
			t.Error("an event without an id")
		}
	})
}

// Ids of one moment to come ascend in the order they are made, and carry it.
func TestIDsOfAMomentToComeAscend(t *testing.T) {
	due := time.Now().Add(100 * 24 * time.Hour).UTC().Truncate(time.Millisecond)
	c := event.MustContract("things", "/test", `{"type":"record","name":"Thing","fields":[]}`)
	seen := map[string]bool{}
	last := ""
	for range 20_000 {
		e := c.EnvelopeAt(t.Context(), noThing{c}, due)
		id := e.ID.String()
		if id <= last || seen[id] {
			t.Fatalf("%s after %s", id, last)
		}
		if e.ID.Version() != 7 || e.ID.Variant() != uuid.RFC4122 || !event.IDTime(e.ID).Equal(due) || !e.Time.Equal(due) {
			t.Fatalf("%s: version %d, %s of %s", id, e.ID.Version(), event.IDTime(e.ID), due)
		}
		seen[id], last = true, id
	}
}

type noThing struct{ c *event.Contract }

func (n noThing) EventContract() *event.Contract { return n.c }
func (noThing) EventKey() string                 { return "k" }
func (noThing) EventSequence() int64             { return 0 }
