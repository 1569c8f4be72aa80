package relay_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/outbox/relay"
)

func TestADroppedPublicationIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	w.exec(`DROP PUBLICATION waybill_outbox`)
	w.add("a", 2)
	if got, _ := story(t, w.read(2)); !slices.Equal(got["a"], []int64{1, 2}) {
		t.Errorf("published %v", got["a"])
	}
	w.told(log, 1, "publication was gone")
	if n := w.incidents("publication_gone"); n != 1 {
		t.Errorf("%d incidents, want 1", n)
	}
}

// Whoever may not make it is told who may, and what to run.
func TestAPublicationThatTheRoleMayNotMakeIsToldOnceAndShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	w.exec(`DO $$ BEGIN EXECUTE format('REVOKE CREATE ON DATABASE %I FROM %I', current_database(), current_user); END $$`)
	w.exec(`DROP PUBLICATION waybill_outbox`)
	w.add("a", 2)
	w.told(log, 2, "relay stopped", "CREATE PUBLICATION", "CREATE on the database")
	if n := w.incidents("publication_incomplete"); n != 1 {
		t.Errorf("%d incidents, want 1", n)
	}
	s, err := relay.ReadStatus(t.Context(), w.db, "")
	must(t, err)
	if s.Publication.Whole || !strings.Contains(s.Publication.Advice, "CREATE PUBLICATION") || strings.Contains(s.Slot.Advice, "start the relay") {
		t.Errorf("%+v, slot: %s", s.Publication, s.Slot.Advice)
	}
	w.exec(`DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user); END $$`)
	if got, _ := story(t, w.read(2)); !slices.Equal(got["a"], []int64{1, 2}) {
		t.Errorf("published %v", got["a"])
	}
}
