package event_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
)

func TestADerivedEventIsTheSameEachTimeAndLikeNoOther(t *testing.T) {
	c := event.MustContract("things", "/test", thingSchema)
	from := event.Envelope{ID: event.NewID(), Tenant: "t1", Time: time.Now().UTC(), CorrelationID: "req-9"}
	a := c.Derived(t.Context(), &from, "g", 0, thing{c, "k", 3})
	if b := c.Derived(t.Context(), &from, "g", 0, thing{c, "k", 3}); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
	if a.Tenant != "t1" || a.CorrelationID != "req-9" || a.CausationID != from.ID.String() || !a.Time.Equal(from.Time) || a.Sequence != 3 {
		t.Errorf("%+v", a)
	}
	if a.ID.Version() != 7 || a.ID.Variant() != uuid.RFC4122 || !event.IDTime(a.ID).Equal(event.IDTime(from.ID)) {
		t.Errorf("id %s of %s", a.ID, from.ID)
	}
	seen := map[uuid.UUID]bool{from.ID: true, a.ID: true}
	for _, other := range []uuid.UUID{event.DerivedID(from.ID, "g", 1), event.DerivedID(from.ID, "h", 0), event.DerivedID(event.NewID(), "g", 0)} {
		if seen[other] {
			t.Errorf("%s twice", other)
		}
		seen[other] = true
	}
}
