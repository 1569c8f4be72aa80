package couriers_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
)

// A consumer puts events that wait into one transaction, whosever they are: none
// may be worked on with what another left set.
func TestEventsOfSeveralMerchantsShareATransaction(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	shops := []uuid.UUID{event.NewID(), event.NewID(), event.NewID()}
	var riders, list []uuid.UUID
	for _, shop := range shops {
		riders = append(riders, b.enrol(t, shop), b.enrol(t, shops...))
	}
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		for i := range 18 { // thrice as many as there are couriers
			order, shop := event.NewID(), shops[i%3]
			list = append(list, order)
			if err := handle(t.Context(), tx, shop, created(order), b.OrderCreated); err != nil {
				return err
			}
		}
		for i, order := range list {
			if err := handle(t.Context(), tx, shops[i%3], changed(order, contracts.OrderStateCancelled, 1), b.OrderStatusChanged); err != nil {
				return err
			}
		}
		for _, table := range ownTables[:3] {
			var n int
			if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM couriers."+table+" WHERE current_setting('waybill.courier', true) <> ''").Scan(&n); err != nil || n != 0 {
				t.Errorf("still acts for a courier: %d %v", n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range riders {
		b.requireState(t, r, couriers.Available)
	}
	for _, shop := range shops {
		if s := b.sums(t, shop); s != (sums{}) {
			t.Errorf("%+v", s)
		}
	}
	for i, order := range list {
		for _, s := range b.heard(t, "couriers.reservations", order) {
			if s.Tenant != shops[i%3].String() {
				t.Errorf("said to tenant %s", s.Tenant)
			}
		}
	}
	b.requireGapless(t)
}

func handle[E event.Data](ctx context.Context, tx pgx.Tx, tenant uuid.UUID, data E, h func(context.Context, pgx.Tx, event.Of[E]) error) error {
	e := event.Of[E]{Envelope: event.Envelope{ID: event.NewID(), Tenant: tenant.String()}, Data: data}
	return h(event.WithCause(ctx, &e.Envelope), tx, e)
}
