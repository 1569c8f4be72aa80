package app

import (
	"context"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/assign"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/dispatch"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tracking"
	"github.com/waybillhq/waybill/saga"
)

// inTurn has a module's group do one transaction at a time, with all that waits
// in it. Its handlers are nothing but SQL, so that under load sharing a
// transaction spares more than doing several at once would win; and two of them
// would lock the same orders, which come by several topics, in opposite order.
// Groups of several processes may: the runtime sees to that.
func (a *App) inTurn(c *consumer.Config) {
	c.Workers, c.Gather, c.Together, c.Places = 1, gatherFor, togetherFor, a.places()
}

// gatherFor is how long a module's group lets events come together. Nobody waits
// for a module as a page waits for an order, and on a small machine all of them
// take from that page what they do for each event alone.
const gatherFor = 25 * time.Millisecond

// togetherFor is how long the handlers of one transaction of a module should take
// together. With a place for one of them at a time, a group that has much to do
// must get more done in its turn than one that has little.
const togetherFor = 50 * time.Millisecond

// places are for the transactions of all groups, half as many as there are
// processors. The other half is for who waits: requests, the relay, the streams.
// Without that bound the groups, which handle each order many times, take all
// there is under load, and each order is seen ten times later.
func (a *App) places() *consumer.Places {
	if a.groups == nil {
		a.groups = consumer.NewPlaces(runtime.NumCPU() / 2)
	}
	return a.groups
}

// apart has a group handle several events at once, each in a transaction of its
// own: what waits for others than the database must not wait for each other.
func (a *App) apart(c *consumer.Config) { c.Workers, c.MaxBatch, c.Places = 4, 1, a.places() }

// group is a module's: named as its role, on its pool.
func (a *App) group(p *product, role string, how func(*consumer.Config)) *consumer.Group {
	cfg := consumer.Config{Group: role, Metrics: a.metrics, Logger: a.log}
	how(&cfg)
	return consumer.New(
		consumer.Deps{DB: a.dbOf(role), Owner: a.engines.db, Client: a.engines.broker.Client, Decoder: p.decoder}, cfg)
}

// startOrders has orders react to what the other modules do.
func (a *App) startOrders(ctx context.Context, p *product) {
	store := orders.New(a.dbOf(RoleOrders), p.outbox, orders.Config{})
	g := a.group(p, RoleOrders, a.inTurn)
	store.Subscribe(g)
	a.stack.run(ctx, "orders housekeeping", store.Run)
	a.stack.run(ctx, RoleOrders, g.Run)
}

func (a *App) startCouriers(ctx context.Context, p *product) {
	m := couriers.New(a.dbOf(RoleCouriers), p.outbox, couriers.Config{Logger: a.log})
	g := a.group(p, RoleCouriers, a.inTurn)
	m.Subscribe(g)
	assign.ReactCouriers(g, m)
	a.stack.run(ctx, "couriers' deadlines", m.Run)
	a.stack.run(ctx, RoleCouriers, g.Run)
}

func (a *App) startBilling(ctx context.Context, p *product) {
	l := billing.New(a.dbOf(RoleBilling), p.outbox, billing.Config{Faults: a.faultFlags(ctx)})
	g := a.group(p, RoleBilling, a.inTurn)
	l.Subscribe(g)
	assign.ReactBilling(g, l)
	a.stack.run(ctx, RoleBilling, g.Run)
}

func (a *App) startDispatch(ctx context.Context, p *product) {
	d := dispatch.New(a.dbOf(RoleDispatch), p.outbox, dispatch.Config{Faults: a.faultFlags(ctx)})
	g := a.group(p, RoleDispatch, a.apart)
	d.Subscribe(g)
	a.stack.run(ctx, RoleDispatch, g.Run)
}

// startTracking keeps where couriers are.
func (a *App) startTracking(ctx context.Context, p *product) {
	t := tracking.New(a.dbOf(RoleTracking), tracking.Config{})
	g := a.group(p, RoleTracking, a.inTurn)
	t.Subscribe(g)
	a.stack.run(ctx, "old positions", t.Run)
	a.stack.run(ctx, RoleTracking, g.Run)
}

// startSaga watches over assignments.
func (a *App) startSaga(ctx context.Context, p *product) error {
	o, err := saga.New(
		saga.Deps{DB: a.engines.db, Client: a.engines.broker.Client, Decoder: p.decoder, Outbox: p.outbox},
		saga.Config{Metrics: a.metrics, Logger: a.log, Gather: gatherFor, Together: togetherFor, Places: a.places()},
		assign.Saga(assign.Config{}))
	if err != nil {
		return err
	}
	a.stack.run(ctx, RoleSaga, o.Run)
	return nil
}

// faultFlags are one for the whole program.
func (a *App) faultFlags(ctx context.Context) *faults.Flags {
	if a.faults == nil {
		a.faults = faults.New(a.engines.db, faults.Config{Logger: a.log})
		a.stack.run(ctx, "faults", a.faults.Run)
		if a.engines.suspend != nil {
			a.stack.run(ctx, "outages on purpose", a.followOutage)
		}
	}
	return a.faults
}

// followOutage suspends a broker of our own while the fault for that is set.
// When it stops, so does the outage: what is to be published yet must get out.
func (a *App) followOutage(ctx context.Context) error {
	defer a.engines.suspend(false)
	turn := time.NewTicker(200 * time.Millisecond)
	defer turn.Stop()
	down := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
		if want := a.faults.Value(faults.BrokerDown) > 0; want != down {
			down = want
			a.log.WarnContext(ctx, "outage of the broker, on purpose", "down", down)
			a.engines.suspend(down)
		}
	}
}

// cards shows a merchant's couriers as orders name them.
type cards struct{ *couriers.Module }

func (c cards) Cards(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]api.CourierCard, error) {
	found, err := c.Among(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID]api.CourierCard{}
	for _, f := range found {
		out[f.ID] = api.CourierCard{ID: f.ID, Name: f.Name, Vehicle: string(f.Vehicle)}
	}
	return out, nil
}
