package orders_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
)

func (b bed) jobs(t testing.TB, courier uuid.UUID) (ids []uuid.UUID, jobs []orders.Job) {
	t.Helper()
	jobs, err := b.Jobs(t.Context(), courier)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		ids = append(ids, j.Order)
	}
	return ids, jobs
}

func TestJobsAreWhatACourierCarriesForAllTenants(t *testing.T) {
	t.Parallel()
	b, courier := newBed(t, orders.Config{}), event.NewID()
	var want []uuid.UUID
	for range 3 {
		tenant := event.NewID()
		o := b.create(t, tenant)
		s := newSaga(o.ID, 1)
		s.reserved.CourierID, s.billed.CourierID, s.notified.CourierID = courier, courier, courier
		b.give(t, tenant, s.reserved)
		if ids, _ := b.jobs(t, courier); !slices.Equal(ids, want) {
			t.Errorf("an order that is not assigned yet is a job: %v", ids)
		}
		b.give(t, tenant, s.billed, s.notified)
		want = append(want, o.ID)
		b.assigned(t, tenant) // somebody else's
	}
	ids, jobs := b.jobs(t, courier)
	if !slices.Equal(ids, want) {
		t.Fatalf("jobs %v, want %v", ids, want)
	}
	j := jobs[0]
	if j.State != orders.Assigned || !slices.Equal(j.Allowed, []orders.State{orders.PickupOngoing}) || j.Version != 4 || j.Attempt != 1 ||
		j.Dropoff.Street != "Avenida Paulista" || j.Customer.Phone == "" || len(j.Items) != 2 || j.PickupETA == nil || j.AssignedAt == nil || *j.DistanceM != 4200 {
		t.Errorf("%+v", j)
	}
	moved, err := b.MoveAsCourier(t.Context(), courier, j.Order, orders.Move{To: orders.PickupOngoing, Actor: orders.System, Expected: 4}, "")
	if err != nil || moved.State != orders.PickupOngoing || moved.Tenant != j.Tenant || moved.Code != "" {
		t.Fatalf("%+v, %v", moved, err)
	}
	b.walk(t, j.Tenant, j.Order, orders.Cancelled)
	if ids, _ := b.jobs(t, courier); !slices.Equal(ids, want[1:]) {
		t.Errorf("after the end of one: %v", ids)
	}
}

func TestACourierMovesOnlyWhatIsTheirs(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, s := b.assigned(t, tenant)
	mine := s.reserved.CourierID
	start := orders.Move{To: orders.PickupOngoing}
	for name, who := range map[string][2]uuid.UUID{
		"a stranger": {event.NewID(), o.ID}, "nobody": {uuid.Nil, o.ID}, "no order": {mine, event.NewID()},
	} {
		if _, err := b.MoveAsCourier(t.Context(), who[0], who[1], start, ""); !errors.Is(err, orders.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var forbidden *orders.ForbiddenTransition
	if _, err := b.MoveAsCourier(t.Context(), mine, o.ID, orders.Move{To: orders.Cancelled}, ""); !errors.As(err, &forbidden) ||
		!slices.Equal(forbidden.Allowed, []orders.State{orders.PickupOngoing}) {
		t.Errorf("cancels: %v", err)
	}
	var conflict *orders.VersionConflict
	if _, err := b.MoveAsCourier(t.Context(), mine, o.ID, orders.Move{To: orders.PickupOngoing, Expected: 2}, ""); !errors.As(err, &conflict) ||
		!slices.Equal(conflict.Allowed, []orders.State{orders.PickupOngoing}) {
		t.Errorf("at another version: %v", err)
	}
	b.give(t, tenant, s.released)
	if _, err := b.MoveAsCourier(t.Context(), mine, o.ID, start, ""); !errors.Is(err, orders.ErrNotFound) {
		t.Errorf("after the release: %v", err)
	}
	if ids, _ := b.jobs(t, mine); len(ids) != 0 {
		t.Errorf("after the release: %v", ids)
	}
}

// The order is given to another between the look of the first courier's move and
// its lock: the move must not be made on the other's order.
func TestAMoveThatComesTooLateIsNotTheNextCouriers(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, first := b.assigned(t, tenant)
	next := newSaga(o.ID, 2)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []event.Data{first.released, next.reserved, next.notified} {
		if err := b.hearIn(t.Context(), tx, tenant, told); err != nil {
			t.Fatal(err)
		}
	}
	moved := make(chan error, 1)
	go func() {
		_, err := b.MoveAsCourier(t.Context(), first.reserved.CourierID, o.ID, orders.Move{To: orders.PickupOngoing}, "")
		moved <- err
	}()
	late := time.After(time.Minute)
	for waiting := 0; waiting == 0; {
		if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatal("the move never waits")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-moved; !errors.Is(err, orders.ErrNotFound) {
		t.Errorf("the first courier's move: %v", err)
	}
	if got := b.get(t, tenant, o.ID); got.State != orders.Assigned || got.Courier != next.reserved.CourierID {
		t.Errorf("%+v", got)
	}
}

func TestTheCouriersSettingShowsTheirOrdersAndWritesNothing(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	_, s := b.assigned(t, tenant)
	b.assigned(t, tenant)
	gone, before := b.assigned(t, tenant)
	b.give(t, tenant, before.released)
	again := newSaga(gone.ID, 2)
	again.reserved.CourierID, again.billed.CourierID, again.notified.CourierID = s.reserved.CourierID, s.reserved.CourierID, s.reserved.CourierID
	b.give(t, tenant, again.reserved, again.billed, again.notified)
	for courier, want := range map[uuid.UUID]int{s.reserved.CourierID: 2, before.reserved.CourierID: 0, event.NewID(): 0} {
		err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.courier', $1, true)`, courier.String()); err != nil {
				return err
			}
			for _, table := range []string{"orders.orders", "orders.assignments"} {
				if n := rows(t, tx, table); n != want {
					t.Errorf("%s shows %d rows, want %d", table, n, want)
				}
			}
			if n := rows(t, tx, "orders.transitions") + rows(t, tx, "orders.idempotency_keys"); n != 0 {
				t.Errorf("other tables show %d rows", n)
			}
			for _, sql := range []string{
				`UPDATE orders.orders SET state = 'CANCELLED'`, `UPDATE orders.assignments SET voided_at = now()`, `DELETE FROM orders.assignments`,
			} {
				if ct, err := tx.Exec(t.Context(), sql); err != nil || ct.RowsAffected() != 0 {
					t.Errorf("%s: %d rows, %v", sql, ct.RowsAffected(), err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
