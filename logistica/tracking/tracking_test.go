package tracking

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/pg"
)

func TestAPositionIsSeenWhileTheOrderIsOutWithThatCourier(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newRide()
	b.located(fix(r.courier, 1))
	b.created(r)
	b.requireUnseen(r)
	b.moved(r, 2, contracts.OrderStateAssigning)
	b.moved(r, 3, contracts.OrderStateAssigned)
	b.requireUnseen(r)
	b.assigned(r, 4)
	b.requireSeen(r, 1)
	b.located(fix(r.courier, 2))
	for v, s := range []contracts.OrderState{"PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER"} {
		b.moved(r, int64(5+v), s)
		b.requireSeen(r, 2)
	}
	b.moved(r, 10, contracts.OrderStateDelivered)
	b.requireUnseen(r)
	b.located(fix(r.courier, 3))
	b.requireUnseen(r)
}

func TestEveryEndOfARideHidesItsCourier(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, s := range contracts.OrderState("").Values() {
		r := b.out()
		b.located(fix(r.courier, 1))
		b.moved(r, 9, s)
		switch s {
		case "CREATED", "UNASSIGNABLE", "CANCELLED", "DELIVERED", "RETURNED":
			b.requireUnseen(r)
		default:
			b.requireSeen(r, 1)
		}
	}
}

func TestAnotherTenantAndAnotherOrderSeeNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs := b.out(), b.out()
	b.located(fix(ours.courier, 1), fix(theirs.courier, 2))
	b.requireSeen(ours, 1)
	b.requireSeen(theirs, 2)
	b.requireUnseen(ride{tenant: theirs.tenant, order: ours.order}.linkless(b))
	if way, err := b.Trail(t.Context(), theirs.tenant, ours.order); err != nil || len(way) != 0 {
		t.Errorf("another tenant sees the way: %v, %v", way, err)
	}
	if _, err := b.ForOrder(t.Context(), event.NewID()); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// linkless checks the tenant's side only, by an order nobody has.
func (r ride) linkless(b *bed) ride {
	if _, err := b.Position(b.t.Context(), r.tenant, r.order); !errors.Is(err, ErrNotFound) {
		b.t.Errorf("another tenant sees the position: %v", err)
	}
	return ride{tenant: r.tenant, order: event.NewID()}
}

func TestRowLevelSecurityHoldsBeneathEveryStatement(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs, idle := b.out(), b.out(), event.NewID()
	b.located(fix(ours.courier, 1), fix(theirs.courier, 1), fix(idle, 1))
	over := b.out()
	over.tenant = ours.tenant
	for _, table := range []string{"tracking.rides", "tracking.positions", "tracking.trail"} {
		count := func(n *int) func(pgx.Tx) error {
			return func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(n) }
		}
		var mine, link, nobodys int
		b.must(pg.InTenant(t.Context(), b.pool, ours.tenant.String(), count(&mine)))
		b.must(pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.tracking_order', $1, true)`, ours.order); err != nil {
				return err
			}
			return count(&link)(tx)
		}))
		b.must(pgx.BeginFunc(t.Context(), b.pool, count(&nobodys)))
		if mine != 1 || link != 1 || nobodys != 0 {
			t.Errorf("%s shows %d to its tenant, %d to its order's link, %d to nobody", table, mine, link, nobodys)
		}
	}
	for name, sql := range map[string]string{
		"move a position": `UPDATE tracking.positions SET lat = 0`,
		"drop a position": `DELETE FROM tracking.positions`,
		"drop a trail":    `DELETE FROM tracking.trail WHERE order_id = '` + theirs.order.String() + `'`,
	} {
		b.must(pg.InTenant(t.Context(), b.pool, ours.tenant.String(), func(tx pgx.Tx) error {
			ct, err := tx.Exec(t.Context(), sql)
			if ct.RowsAffected() != 0 {
				t.Errorf("%s: %d rows", name, ct.RowsAffected())
			}
			return err
		}))
	}
}

func TestASetActsForAllTenantsAndLeavesNoTraceOfIt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := b.out()
	b.must(pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		var es []event.Of[contracts.CourierLocationUpdated]
		es = append(es, event.Of[contracts.CourierLocationUpdated]{Data: fix(r.courier, 1)})
		if err := b.Located(t.Context(), tx, es); err != nil {
			return err
		}
		var n int
		err := tx.QueryRow(t.Context(), `SELECT count(*) FROM tracking.positions`).Scan(&n)
		if n != 0 {
			t.Errorf("what comes after it in its transaction sees %d positions", n)
		}
		return err
	}))
	b.requireSeen(r, 1)
}

func TestALateOrRepeatedFixMovesNothingBack(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := b.out()
	b.located(fix(r.courier, 5))
	b.located(fix(r.courier, 3), fix(r.courier, 5), fix(r.courier, 4))
	b.requireSeen(r, 5)
	b.located(fix(r.courier, 7), fix(r.courier, 6), fix(r.courier, 7))
	b.requireSeen(r, 7)
	way, err := b.Trail(t.Context(), r.tenant, r.order)
	if err != nil {
		t.Fatal(err)
	}
	if got := seqs(way); !slices.Equal(got, []int64{3, 4, 5, 6, 7}) {
		t.Errorf("the way is %v", got)
	}
}

func seqs(way []Fix) (n []int64) {
	for _, f := range way {
		n = append(n, f.Seq)
	}
	return n
}

func TestAClockThatIsAheadDoesNotFreezeItsCourier(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := b.out()
	ahead := fix(r.courier, 1)
	ahead.FixTime = ahead.FixTime.Add(24 * time.Hour)
	b.located(ahead)
	b.located(fix(r.courier, 2))
	b.requireSeen(r, 2)
}

func TestWhatIsNoPlaceOnEarthIsLeftOut(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := b.out()
	bad := fix(r.courier, 2)
	bad.Lat = 91
	b.located(fix(r.courier, 1), bad)
	b.located(bad)
	b.requireSeen(r, 1)
}

func TestATrailIsBoundedAndKeepsTheNewest(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := b.out()
	var all []contracts.CourierLocationUpdated
	for n := range int64(TrailLength + 200) {
		all = append(all, fix(r.courier, n))
	}
	b.located(all[:10]...)
	b.located(all...) // two rounds of the ring in one set
	b.located(all[:300]...)
	way, err := b.Trail(t.Context(), r.tenant, r.order)
	if err != nil || len(way) != TrailLength || way[0].Seq != 200 || way[len(way)-1].Seq != TrailLength+199 {
		t.Fatalf("%d fixes from %v: %v", len(way), seqs(way[:min(1, len(way))]), err)
	}
}

func TestAReassignedOrderShowsItsNewCourierAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	first := b.out()
	b.located(fix(first.courier, 1))
	b.moved(first, 5, contracts.OrderStateCreated)
	b.requireUnseen(first)
	second := first
	second.courier = event.NewID()
	b.moved(second, 6, contracts.OrderStateAssigning)
	b.moved(second, 7, contracts.OrderStateAssigned)
	b.assigned(second, 8)
	b.located(fix(second.courier, 9), fix(first.courier, 2))
	b.requireSeen(second, 9)
	way, err := b.Trail(t.Context(), second.tenant, second.order)
	if err != nil || len(way) != 1 {
		t.Errorf("the way is %v: %v", seqs(way), err)
	}
}

// Whatever order facts come in, and however often, the same is seen in the end:
// the newest fix of the courier who was assigned last, if nothing ended that.
func TestAnyOrderOfArrivalEndsTheSame(t *testing.T) {
	b := newBed(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := newRide()
		attempts := rapid.IntRange(1, 3).Draw(rt, "attempts")
		ends := rapid.Bool().Draw(rt, "ends")
		var facts []func()
		facts = append(facts, func() { b.created(r) })
		version := int64(2)
		last := r
		for a := range attempts {
			last.courier = event.NewID()
			now, v := last, version
			facts = append(facts, func() { b.moved(now, v, "ASSIGNED") }, func() { b.assigned(now, v+1) })
			version += 2
			if a < attempts-1 || ends {
				v := version
				facts = append(facts, func() {
					b.moved(now, v, rapid.SampledFrom([]contracts.OrderState{"CREATED", "CANCELLED"}).Draw(rt, "end"))
				})
				version++
			}
		}
		newest := int64(rapid.IntRange(1, 12).Draw(rt, "fixes"))
		for n := int64(1); n <= newest; n++ {
			facts = append(facts, func() { b.located(fix(last.courier, n)) })
		}
		facts = append(facts, facts[rapid.IntRange(0, len(facts)-1).Draw(rt, "again")])
		for _, i := range rapid.Permutation(indices(len(facts))).Draw(rt, "order") {
			facts[i]()
		}
		if ends {
			b.requireUnseen(last)
			return
		}
		b.requireSeen(last, newest)
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// After every set the position is the newest fix there was.
func TestAPositionNeverGoesBack(t *testing.T) {
	b := newBed(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := b.out()
		newest := int64(-1)
		for range rapid.IntRange(1, 6).Draw(rt, "sets") {
			numbers := rapid.SliceOfN(rapid.Int64Range(0, 1200), 1, 8).Draw(rt, "fixes")
			var fixes []contracts.CourierLocationUpdated
			for _, n := range numbers {
				newest = max(newest, n)
				fixes = append(fixes, fix(r.courier, n), fix(event.NewID(), n))
			}
			b.located(fixes...)
			b.requireSeen(r, newest)
		}
	})
}

func TestSetsThatMeetInTheSameCouriersAllCommit(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	rides := make([]ride, 20)
	for i := range rides {
		rides[i] = b.out()
	}
	done := make(chan error)
	for range 4 {
		go func() {
			for n := range int64(15) {
				var es []event.Of[contracts.CourierLocationUpdated]
				for _, i := range rand.Perm(len(rides)) {
					es = append(es, event.Of[contracts.CourierLocationUpdated]{Data: fix(rides[i].courier, n)})
				}
				if err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error { return b.Located(t.Context(), tx, es) }); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, r := range rides {
		b.requireSeen(r, 14)
	}
}

func TestWhatIsOldAndOverIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	over, on, idle := b.out(), b.out(), event.NewID()
	b.located(fix(over.courier, 1), fix(on.courier, 1), fix(idle, 1))
	b.moved(over, 5, contracts.OrderStateDelivered)
	b.must(b.Forget(t.Context()))
	if n := b.rows("rides"); n != 2 {
		t.Fatalf("%d rides though none is old", n)
	}
	later := New(b.pool, Config{Now: func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }})
	b.must(later.Forget(t.Context()))
	if r, p, w := b.rows("rides"), b.rows("positions"), b.rows("trail"); r != 1 || p != 0 || w != 1 {
		t.Errorf("%d rides, %d positions, %d fixes are left", r, p, w)
	}
}

func (b *bed) rows(table string) (n int) {
	b.t.Helper()
	b.must(pgx.BeginFunc(b.t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(b.t.Context(), `SELECT set_config('waybill.tracking', 'on', true)`); err != nil {
			return err
		}
		return tx.QueryRow(b.t.Context(), `SELECT count(*) FROM tracking.`+table).Scan(&n)
	}))
	return n
}

func TestAnEventOfNoTenantIsRefused(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newRide()
	e := event.Of[contracts.OrderAssigned]{Data: contracts.OrderAssigned{OrderID: r.order, CourierID: r.courier, Version: 2}}
	if err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error { return b.Assigned(t.Context(), tx, e) }); err == nil {
		t.Error("taken")
	}
	b.created(r)
	stranger := ride{uuid.New(), r.order, r.courier}
	if err := give(b, stranger.tenant, contracts.OrderAssigned{OrderID: r.order, CourierID: r.courier, Version: 2}, b.Assigned); err == nil {
		t.Error("another tenant assigns the order")
	}
}
