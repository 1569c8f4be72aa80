package couriers_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// sums is what the tables hold, for one tenant.
type sums struct{ active, waiting, couriers, orders int }

func (b *bed) sums(t testing.TB, tenant uuid.UUID) (s sums) {
	t.Helper()
	err := pg.InTenant(t.Context(), b.pool, tenant.String(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT
			(SELECT count(*) FROM couriers.reservations WHERE state IN ('RESERVED', 'CONFIRMED')),
			(SELECT count(*) FROM couriers.requests WHERE state = 'WAITING'),
			(SELECT count(DISTINCT courier) FROM couriers.reservations WHERE state IN ('RESERVED', 'CONFIRMED')),
			(SELECT count(DISTINCT order_id) FROM couriers.reservations WHERE state IN ('RESERVED', 'CONFIRMED'))`).
			Scan(&s.active, &s.waiting, &s.couriers, &s.orders)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// retry gives an event again after a conflict, as a consumer does.
func retry(t testing.TB, f func() error) {
	t.Helper()
	for {
		err := f()
		if err == nil {
			return
		}
		if !pg.Conflict(err) {
			t.Error(err)
			return
		}
	}
}

func TestRacingOrdersShareCouriersWithoutSharingOne(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	b, shop := bedOn(t, dsn), event.NewID()
	modules := []*bed{b, bedOn(t, dsn)} // two processes
	const orders, riders = 200, 60
	for range riders {
		b.enrol(t, shop)
	}
	for _, m := range modules {
		m.warm(t)
	}
	var ids [orders]uuid.UUID
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range ids {
		ids[i] = event.NewID()
		m := modules[i%2]
		all.Go(func() {
			<-start
			retry(t, func() error { return give(t.Context(), m.pool, shop, created(ids[i]), m.OrderCreated) })
		})
	}
	close(start)
	all.Wait()
	settle(t, b)
	if s := b.sums(t, shop); s != (sums{riders, orders - riders, riders, riders}) {
		t.Errorf("%+v", s)
	}
	// Each is delivered by whoever has it, and another is served: all of them
	// come to an end, with all couriers free again.
	for done := 0; done < orders && !t.Failed(); {
		held := b.active(t, shop)
		if len(held) == 0 {
			t.Fatalf("%d of %d orders were served", done, orders)
		}
		for _, s := range held {
			all.Go(func() {
				m := modules[rand.IntN(2)]
				retry(t, func() error {
					return give(t.Context(), m.pool, shop, changed(s.order, contracts.OrderStateDelivered, 1), m.OrderStatusChanged)
				})
			})
			done++
		}
		all.Wait()
		settle(t, b)
	}
	if s := b.sums(t, shop); s != (sums{}) {
		t.Errorf("at the end %+v", s)
	}
	b.requireGapless(t)
}

// warm opens every connection of the pool: else the first few do all the work,
// and nothing races.
func (b *bed) warm(t testing.TB) {
	t.Helper()
	open := make([]*pgxpool.Conn, b.pool.Config().MaxConns)
	for i := range open {
		var err error
		if open[i], err = b.pool.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range open {
		c.Release()
	}
}

// settle runs the sweep that finds who missed each other.
func settle(t testing.TB, b *bed) {
	t.Helper()
	for {
		n, err := b.ServeWaiting(t.Context())
		if err != nil && !pg.Conflict(err) {
			t.Fatal(err)
		}
		if n == 0 && err == nil {
			return
		}
	}
}

type held struct {
	order, courier uuid.UUID
	attempt        int32
}

func (b *bed) active(t testing.TB, tenant uuid.UUID) (list []held) {
	t.Helper()
	err := pg.InTenant(t.Context(), b.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT order_id, courier, attempt FROM couriers.reservations WHERE state IN ('RESERVED', 'CONFIRMED')`)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h held, err error) {
			return h, row.Scan(&h.order, &h.courier, &h.attempt)
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestTheDatabaseRefusesASecondAssignmentWhateverTheProgramDoes(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.enrol(t, shop)
	order := b.create(t, shop)
	for name, h := range map[string]held{
		"one_order_for_a_courier":  {event.NewID(), rui, 1},
		"one_courier_for_an_order": {order, event.NewID(), 2},
	} {
		err := pg.InTenant(t.Context(), b.pool, shop.String(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO couriers.reservations VALUES ($1, $2, $3, $4, 'RESERVED', NULL, now(), 0, 0, now(), NULL)`,
				shop, h.order, h.attempt, h.courier)
			return err
		})
		requireConstraint(t, err, name)
	}
}

// Confirmation and expiry race: one of them wins, and courier and order agree on
// which.
func TestExpiryRacingConfirmationHasOneWinner(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	var won [2]int
	for range 30 {
		rui := b.enrol(t, shop)
		order := b.create(t, shop)
		b.race(t,
			func(ctx context.Context) error {
				return give(ctx, b.pool, shop, assigned(order, rui, 1), b.OrderAssigned)
			},
			func(ctx context.Context) error {
				ctx = event.WithTenant(ctx, shop.String())
				return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return b.Overdue(ctx, tx, shop, order, 1, true) })
			})
		switch c := b.get(t, rui); c.State {
		case couriers.Busy:
			won[0]++
			b.requireTale(t, order, "reserved 1")
			b.change(t, shop, order, contracts.OrderStateDelivered, 1)
		case couriers.Available:
			won[1]++
			b.requireTale(t, order, "reserved 1", "released 1 EXPIRED")
		default:
			t.Errorf("courier is %s", c.State)
		}
		b.status(t, rui, couriers.Offline)
	}
	t.Logf("%d confirmed, %d expired", won[0], won[1])
	b.requireGapless(t)
}

func TestCancelRacingReservationHoldsNobody(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.enrol(t, shop)
	for range 30 {
		order := event.NewID()
		b.race(t,
			func(ctx context.Context) error { return give(ctx, b.pool, shop, created(order), b.OrderCreated) },
			func(ctx context.Context) error {
				return give(ctx, b.pool, shop, changed(order, contracts.OrderStateCancelled, 1), b.OrderStatusChanged)
			})
		b.requireState(t, rui, couriers.Available)
		if tale := b.tale(t, order); tale != "" && tale != "reserved 1, released 1 CANCELLED" {
			t.Errorf("said %q", tale)
		}
	}
	if s := b.sums(t, shop); s != (sums{}) {
		t.Errorf("%+v", s)
	}
	b.requireGapless(t)
}

func (b *bed) race(t *testing.T, all ...func(context.Context) error) {
	t.Helper()
	var ready, done sync.WaitGroup
	ready.Add(len(all))
	for _, f := range all {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			retry(t, func() error { return f(t.Context()) })
		})
	}
	done.Wait()
}
