package couriers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/pg"
)

// maxAttempts is after how many attempts orders gives up.
const maxAttempts = 3

// sale is an order as the orders module would keep it, and what it has not heard
// yet of the couriers.
type sale struct {
	id       uuid.UUID
	attempt  int32
	assigned uuid.UUID // its courier, nil if none
	state    contracts.OrderState
	heard    int64 // how far it has read what couriers said
	waiting  int   // its facts that are under way
}

// world plays orders, billing and dispatch to the module on a real database. A
// fact is a handler's call that has not been made yet; any of them may be next.
type world struct {
	*bed
	t      *testing.T
	draw   *rapid.T
	shop   uuid.UUID
	riders []uuid.UUID
	sales  []*sale
	facts  []fact
}

type fact struct {
	of   *sale
	name string
	tell func() error
}

var errCrash = errors.New("the process is gone before the commit")

// tell makes a fact of an event and its handler. A crash undoes the transaction
// after the handler has done its work.
func tell[E event.Data](w *world, of *sale, name string, data E, h func(context.Context, pgx.Tx, event.Of[E]) error) {
	of.waiting++
	w.facts = append(w.facts, fact{of, name, func() error {
		crash := rapid.IntRange(0, 5).Draw(w.draw, "crash") == 0
		err := give(w.t.Context(), w.pool, w.shop, data, func(ctx context.Context, tx pgx.Tx, e event.Of[E]) error {
			if err := h(ctx, tx, e); err != nil || !crash {
				return err
			}
			return errCrash
		})
		return err
	}})
}

func (w *world) changed(s *sale, to contracts.OrderState) {
	e := changed(s.id, to, s.attempt)
	e.From, s.state = s.state, to
	tell(w, s, string(to), e, w.OrderStatusChanged)
}

// deliver makes one of the calls that wait, and leaves it waiting where it
// crashed or comes again.
func (w *world) deliver() {
	i := rapid.IntRange(0, len(w.facts)-1).Draw(w.draw, "which")
	f := w.facts[i]
	err := f.tell()
	switch {
	case errors.Is(err, errCrash):
		return
	case err != nil:
		w.draw.Fatalf("%s of %s: %v", f.name, f.of.id, err)
	}
	if rapid.IntRange(0, 4).Draw(w.draw, "again") == 0 {
		return
	}
	f.of.waiting--
	w.facts = append(w.facts[:i], w.facts[i+1:]...)
}

// hear has orders, billing and dispatch take the next that couriers said of an
// order; false where there is nothing new.
func (w *world) hear(s *sale) bool {
	var typ string
	var body []byte
	err := w.pool.QueryRow(w.t.Context(), `SELECT type, body FROM waybill.outbox_events
		WHERE topic = 'couriers.reservations' AND subject = $1 AND sequence = $2`, s.id.String(), s.heard+1).Scan(&typ, &body)
	if errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	data, _ := contracts.New(typ)
	if err == nil {
		_, err = data.EventContract().Schema.Decode(body, data)
	}
	if err != nil {
		w.draw.Fatal(err)
	}
	s.heard++
	switch e := data.(type) {
	case *contracts.CourierReserved:
		w.reserved(s, e)
	case *contracts.CourierReleased:
		if e.Attempt == s.attempt && !s.ended() {
			s.assigned = uuid.Nil
			w.again(s)
		}
	case *contracts.CourierReleaseAsked:
		before := s.state == contracts.OrderStateCreated || s.state == contracts.OrderStateAssigned && e.Reason != contracts.ReleaseAskExpired
		if e.Attempt == s.attempt && before {
			s.assigned = uuid.Nil
			w.again(s)
		}
	case *contracts.CourierReservationFailed:
		if e.Final && e.Attempt == s.attempt && s.state == contracts.OrderStateCreated {
			w.changed(s, contracts.OrderStateUnassignable)
		}
	}
	return true
}

func (s *sale) ended() bool {
	return s.state == contracts.OrderStateCancelled || s.state == contracts.OrderStateDelivered || s.state == contracts.OrderStateUnassignable
}

func (w *world) again(s *sale) {
	if s.attempt == maxAttempts {
		w.changed(s, contracts.OrderStateUnassignable)
		return
	}
	s.attempt++
	w.changed(s, contracts.OrderStateCreated)
}

// reserved is the rest of the saga: the fee fails, the notice fails and the fee
// is voided, the order is assigned, or nothing more is heard.
func (w *world) reserved(s *sale, e *contracts.CourierReserved) {
	if e.Attempt != s.attempt || s.ended() {
		return
	}
	switch rapid.IntRange(0, 5).Draw(w.draw, "saga") {
	case 0:
		tell(w, s, "fee failed", contracts.PlatformFeeFailed{OrderID: s.id, Version: 1, Attempt: e.Attempt, CourierID: e.CourierID}, w.PlatformFeeFailed)
	case 1:
		tell(w, s, "fee voided", contracts.PlatformFeeVoided{OrderID: s.id, Version: 1, Attempt: e.Attempt, CourierID: e.CourierID}, w.PlatformFeeVoided)
	case 2: // stuck, and found
		s.waiting++
		w.facts = append(w.facts, fact{s, "overdue", func() error {
			ctx := event.WithTenant(w.t.Context(), w.shop.String())
			return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.Overdue(ctx, tx, w.shop, s.id, e.Attempt, false) })
		}})
	case 3: // stuck
	default:
		s.assigned, s.state = e.CourierID, contracts.OrderStateAssigned
		tell(w, s, "assigned", assigned(s.id, e.CourierID, e.Attempt), w.OrderAssigned)
	}
}

// act has somebody do something by themselves.
func (w *world) act() {
	s := rapid.SampledFrom(w.sales).Draw(w.draw, "sale")
	ctx := event.WithTenant(w.t.Context(), w.shop.String())
	switch rapid.IntRange(0, 5).Draw(w.draw, "act") {
	case 0:
		if !s.ended() && s.state != contracts.OrderStatePickedUp {
			w.changed(s, contracts.OrderStateCancelled)
		}
	case 1: // whatever is under way
		switch {
		case s.assigned != uuid.Nil && s.state == contracts.OrderStateAssigned:
			w.changed(s, contracts.OrderStatePickedUp)
		case s.state == contracts.OrderStatePickedUp:
			w.changed(s, contracts.OrderStateDelivered)
		}
	case 2:
		if err := w.Decline(ctx, rapid.SampledFrom(w.riders).Draw(w.draw, "rider"), s.id, ""); err != nil && !errors.Is(err, couriers.ErrNoJob) && !errors.Is(err, couriers.ErrCarried) {
			w.draw.Fatal(err)
		}
	case 3:
		if err := w.Reassign(ctx, w.shop, s.id); err != nil && !errors.Is(err, couriers.ErrNoJob) && !errors.Is(err, couriers.ErrCarried) {
			w.draw.Fatal(err)
		}
	default:
		to := rapid.SampledFrom(couriers.States()).Draw(w.draw, "to")
		_, err := w.SetStatus(ctx, rapid.SampledFrom(w.riders).Draw(w.draw, "rider"), to, nil)
		var forbidden *couriers.ForbiddenStatus
		if err != nil && !errors.As(err, &forbidden) {
			w.draw.Fatal(err)
		}
	}
}

// rest lets everything under way arrive, and time pass, until nothing is left.
func (w *world) rest() {
	for quiet := false; !quiet; {
		quiet = true
		for len(w.facts) > 0 {
			w.deliver()
		}
		for _, s := range w.sales {
			for w.hear(s) {
				quiet = false
			}
		}
		if !quiet {
			continue
		}
		w.ahead(11 * time.Minute)
		for _, sweep := range []func(context.Context) (int, error){w.Expire, w.ServeWaiting, w.GiveUp} {
			n, err := sweep(w.t.Context())
			if err != nil {
				w.draw.Fatal(err)
			}
			quiet = quiet && n == 0
		}
	}
}

func TestAnyOrderOfEventsEndsWithOneCourierOrNone(t *testing.T) {
	b := newBed(t)
	rapid.Check(t, func(draw *rapid.T) {
		w := &world{bed: b, t: t, draw: draw, shop: event.NewID()}
		for range rapid.IntRange(1, 3).Draw(draw, "riders") {
			w.riders = append(w.riders, b.enrol(t, w.shop))
		}
		for range rapid.IntRange(1, 3).Draw(draw, "orders") {
			s := &sale{id: event.NewID(), attempt: 1, state: contracts.OrderStateCreated}
			w.sales = append(w.sales, s)
			tell(w, s, "created", created(s.id), w.OrderCreated)
		}
		for range rapid.IntRange(0, 25).Draw(draw, "steps") {
			switch rapid.IntRange(0, 3).Draw(draw, "step") {
			case 0:
				w.act()
			case 1:
				w.hear(rapid.SampledFrom(w.sales).Draw(draw, "who"))
			default:
				if len(w.facts) > 0 {
					w.deliver()
				}
			}
		}
		w.rest()
		w.require()
	})
	b.requireGapless(t)
}

// require is the saga's invariant as far as it is this module's: an order that
// is assigned has exactly its courier, confirmed, and any other has none; who is
// not held is free.
func (w *world) require() {
	busy := map[uuid.UUID]uuid.UUID{}
	var waiting int
	err := pg.InTenant(w.t.Context(), w.pool, w.shop.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(w.t.Context(), `SELECT order_id, courier FROM couriers.reservations WHERE state = 'CONFIRMED'`)
		if err != nil {
			return err
		}
		var order, courier uuid.UUID
		if _, err = pgx.ForEachRow(rows, []any{&order, &courier}, func() error { busy[order] = courier; return nil }); err != nil {
			return err
		}
		return tx.QueryRow(w.t.Context(), `SELECT count(*) + (SELECT count(*) FROM couriers.reservations WHERE state = 'RESERVED')
			FROM couriers.requests WHERE state = 'WAITING'`).Scan(&waiting)
	})
	if err != nil {
		w.draw.Fatal(err)
	}
	if waiting != 0 {
		w.draw.Errorf("%d orders wait or are reserved at the end", waiting)
	}
	held := map[uuid.UUID]bool{}
	for _, s := range w.sales {
		want := uuid.Nil
		if s.state == contracts.OrderStateAssigned || s.state == contracts.OrderStatePickedUp {
			want = s.assigned
		}
		if busy[s.id] != want {
			w.draw.Errorf("order in %s, attempt %d: held by %s, want %s", s.state, s.attempt, busy[s.id], want)
		}
		held[busy[s.id]] = true
	}
	for _, r := range w.riders {
		c := w.get(w.t, r)
		if held[r] != (c.State == couriers.Busy) || c.State == couriers.Reserved {
			w.draw.Errorf("courier is %s, held %v", c.State, held[r])
		}
	}
}
