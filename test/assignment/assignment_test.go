package assignment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/orders"
	saga "github.com/waybillhq/waybill/saga/contracts"
)

// However the modules' events interleave, whatever fails, is cancelled,
// declined, expires, is carried on, comes twice or is undone by a crash: an order
// ends with one courier and one fee, or with neither. Then those that have a
// courier are delivered or brought back, and all couriers are free again.
func TestAnOrderEndsWithOneCourierAndOneFeeOrWithNeither(t *testing.T) {
	pool := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		percent := rapid.SampledFrom([]uint64{0, 0, 30, 60, 100})
		p := begin(pool, &mischief{
			seed: rapid.Uint64().Draw(rt, "seed"), voids: map[string]int{},
			percent: map[string]uint64{
				faults.BillingFailure:      percent.Draw(rt, "bills that fail"),
				faults.NotificationFailure: percent.Draw(rt, "notices that fail"),
				faults.CompensationFailure: percent.Draw(rt, "voids that fail at first"),
			},
		})
		g := &game{product: p, ctx: t.Context(), tenant: event.NewID()}
		for range rapid.IntRange(1, 3).Draw(rt, "couriers") {
			g.ride()
		}
		for range rapid.IntRange(1, 3).Draw(rt, "orders") {
			g.place()
		}
		for range rapid.IntRange(0, 60).Draw(rt, "moves") {
			g.move(rt)
		}
		for g.rest(rt); g.carry(rt); g.rest(rt) { // who is free again may be given what waited
			for out := true; out; out = g.carry(rt) {
				for range rapid.IntRange(0, 6).Draw(rt, "moves between") {
					g.move(rt)
				}
			}
		}
		for _, r := range g.riders {
			if c, err := p.couriers.Get(g.ctx, r); err != nil || c.State == couriers.Reserved || c.State == couriers.Busy {
				rt.Fatalf("with no order left a courier is %s, %v\n%s", c.State, err, p.story())
			}
		}
		if err := p.numbered(); err != nil {
			rt.Fatal(err)
		}
	})
}

// game is a run of the product that a test steers. Once it failed it stands.
type game struct {
	*product
	ctx    context.Context
	tenant uuid.UUID
	riders []uuid.UUID
	placed []uuid.UUID
	err    error
}

func (g *game) ride() {
	id, err := g.courier(g.ctx, g.tenant)
	g.riders = append(g.riders, id)
	g.then("enrol", err)
}

func (g *game) place() {
	id, err := g.order(g.ctx, g.tenant)
	g.placed = append(g.placed, id)
	g.then("place", err)
}

func (g *game) then(what string, err error) {
	if err == nil && g.err == nil {
		err = g.catchUp(g.ctx)
	}
	if err != nil && g.err == nil {
		g.err = fmt.Errorf("%s: %w", what, err)
	}
}

// move does one thing that may happen at any time: mostly an event is handled.
func (g *game) move(rt *rapid.T) {
	if g.err != nil {
		return
	}
	order := rapid.SampledFrom(g.placed)
	rider := rapid.SampledFrom(g.riders)
	switch what := rapid.IntRange(0, 19).Draw(rt, "what"); what {
	case 0:
		_, err := g.orders.Transition(event.WithTenant(g.ctx, g.tenant.String()), g.tenant, order.Draw(rt, "order"), orders.Move{To: orders.Cancelled, Actor: orders.Merchant})
		var late *orders.ForbiddenTransition
		if errors.As(err, &late) {
			err = nil
		}
		g.then("cancel", err)
	case 1, 2:
		err := g.couriers.Decline(g.ctx, rider.Draw(rt, "courier"), order.Draw(rt, "order"), "")
		g.then("decline", but(err, couriers.ErrNoJob, couriers.ErrCarried))
	case 3:
		err := g.couriers.Reassign(event.WithTenant(g.ctx, g.tenant.String()), g.tenant, order.Draw(rt, "order"))
		g.then("reassign", but(err, couriers.ErrNoJob, couriers.ErrCarried))
	case 4:
		g.time = g.time.Add(rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Minute}).Draw(rt, "later"))
		_, err := g.couriers.Expire(g.ctx)
		g.then("expire", err)
	case 5:
		_, err := g.couriers.ServeWaiting(g.ctx)
		g.then("serve", err)
	case 6:
		var busy *couriers.ForbiddenStatus
		err := g.duty(g.ctx, rider.Draw(rt, "courier"), rapid.SampledFrom([]couriers.State{couriers.Available, couriers.Paused, couriers.Offline}).Draw(rt, "duty"))
		if errors.As(err, &busy) {
			err = nil
		}
		g.then("duty", err)
	case 7:
		g.then("overdue", g.standStill(rt, order.Draw(rt, "order")))
	case 8:
		g.time = g.time.Add(6 * time.Minute)
		_, err := g.orders.TakeBack(g.ctx)
		g.then("take back", err)
	case 9, 10:
		o := order.Draw(rt, "order")
		if to := g.onward(o); len(to) > 0 {
			g.walk(o, rapid.SampledFrom(to).Draw(rt, "to"))
		}
	default:
		steps := g.steps()
		if len(steps) == 0 {
			return
		}
		s := steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "next")]
		g.handle(s, rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(rt, "again"), rapid.IntRange(0, 7).Draw(rt, "crash") == 0)
	}
}

// standStill has a step called overdue: forward at any time, since what is slow
// looks the same; back only of an attempt that has turned, as sagas do.
func (g *game) standStill(rt *rapid.T, order uuid.UUID) error {
	b, err := g.book(g.ctx, g.tenant, order)
	if err != nil {
		return err
	}
	if b.Attempt > 1 && rapid.Bool().Draw(rt, "back") {
		step := rapid.SampledFrom([]string{"bill", "reserve"}).Draw(rt, "step")
		return g.overdue(g.ctx, g.tenant, order, b.Attempt-1, step, saga.DirectionBack)
	}
	step := rapid.SampledFrom([]string{"bill", "notify", "assign"}).Draw(rt, "step")
	return g.overdue(g.ctx, g.tenant, order, b.Attempt, step, saga.DirectionForward)
}

func but(err error, but ...error) error {
	for _, b := range but {
		if errors.Is(err, b) {
			return nil
		}
	}
	return err
}

// handle takes a step. A compensation that fails on purpose leaves the event to
// be handled later, as the runtime's retries and parking do.
func (g *game) handle(s step, back int, crash bool) {
	g.faults.failed = false
	err := g.take(g.ctx, s, back, crash)
	if g.faults.failed {
		err = nil
	}
	g.then("handle", err)
}

// end handles all there is, and lets time pass until nothing comes any more.
func (g *game) end(rt *rapid.T) {
	for range 20 {
		before := len(g.records)
		for n := 0; ; n++ {
			steps := g.steps()
			if len(steps) == 0 || g.err != nil {
				break
			}
			if n > 5000 {
				g.err = fmt.Errorf("it does not come to rest\n%s", g.story())
				return
			}
			g.handle(steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "last")], 0, false)
		}
		g.time = g.time.Add(11 * time.Minute)
		_, err := g.couriers.Expire(g.ctx)
		g.then("expire", err)
		_, err = g.couriers.GiveUp(g.ctx)
		g.then("give up", err)
		if g.err != nil || len(g.records) == before {
			return
		}
	}
	g.err = fmt.Errorf("orders go on for ever\n%s", g.story())
}

// story is all that was said, for a failed test.
func (l *log) story() string {
	var b strings.Builder
	for _, r := range l.records {
		fmt.Fprintf(&b, "%4d %s %s %x\n", r.Offset, typeOf(r), r.Key[:8], r.Value)
	}
	return b.String()
}
