package couriers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// said is an event the module has published.
type said struct {
	Tenant, Subject string
	Sequence        int64
	Correlation     string
	event.Data
}

// heard reads what was published under a topic, in the order of sequences for
// each subject.
func (b *bed) heard(t testing.TB, topic string, subject ...uuid.UUID) (list []said) {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `SELECT type, tenant, subject, sequence, correlation_id, body FROM waybill.outbox_events
		WHERE topic = $1 ORDER BY subject, sequence`, topic)
	if err != nil {
		t.Fatal(err)
	}
	var s said
	var typ string
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&typ, &s.Tenant, &s.Subject, &s.Sequence, &s.Correlation, &body}, func() error {
		data, _ := contracts.New(typ)
		if _, err := data.EventContract().Schema.Decode(body, data); err != nil {
			return fmt.Errorf("%s: %w", typ, err)
		}
		s.Data = data
		if len(subject) == 0 || s.Subject == subject[0].String() {
			list = append(list, s)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// tale is what was said of an order, in words.
func (b *bed) tale(t testing.TB, order uuid.UUID) string {
	t.Helper()
	var words []string
	for i, s := range b.heard(t, "couriers.reservations", order) {
		if s.Sequence != int64(i+1) {
			t.Errorf("event %d of order %s has sequence %d", i+1, order, s.Sequence)
		}
		switch e := s.Data.(type) {
		case *contracts.CourierReserved:
			words = append(words, fmt.Sprintf("reserved %d", e.Attempt))
		case *contracts.CourierReleased:
			words = append(words, fmt.Sprintf("released %d %s", e.Attempt, e.Reason))
		case *contracts.CourierReleaseAsked:
			words = append(words, fmt.Sprintf("asked %d %s", e.Attempt, e.Reason))
		case *contracts.CourierReservationFailed:
			words = append(words, fmt.Sprintf("failed %d %s final=%v", e.Attempt, e.Reason, e.Final))
		}
	}
	return strings.Join(words, ", ")
}

func (b *bed) requireTale(t testing.TB, order uuid.UUID, want ...string) {
	t.Helper()
	if got := b.tale(t, order); got != strings.Join(want, ", ") {
		t.Errorf("said %q, want %q", got, strings.Join(want, ", "))
	}
}

// requireGapless looks at everything that was published: numbers from 1 for each
// order and for each courier, each courier's states in a chain, and nobody
// holding two.
func (b *bed) requireGapless(t testing.TB) {
	t.Helper()
	for _, topic := range []string{"couriers.reservations", "couriers.events"} {
		last, state := map[string]int64{}, map[string]contracts.CourierState{}
		for _, s := range b.heard(t, topic) {
			if s.Sequence != last[s.Subject]+1 {
				t.Errorf("%s: %s goes from %d to %d", topic, s.Subject, last[s.Subject], s.Sequence)
			}
			last[s.Subject] = s.Sequence
			if e, ok := s.Data.(*contracts.CourierStatusChanged); ok {
				if at, known := state[s.Subject]; known && at != e.From {
					t.Errorf("courier %s goes from %s, but was %s", s.Subject, e.From, at)
				}
				state[s.Subject] = e.To
			}
		}
	}
}
