package assignment

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/assign"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/dispatch"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	saga "github.com/waybillhq/waybill/saga/contracts"
)

// product is the modules on one database, without a broker: what they say to
// each other goes through the log in whatever order a test chooses.
type product struct {
	*log
	pool     *pgxpool.Pool
	orders   *orders.Store
	couriers *couriers.Module
	keys     *tenants.Directory
	faults   *mischief
	outbox   *outbox.Outbox
	time     time.Time
}

func open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	err = pg.Migrate(t.Context(), pool, tables.Migration(), consumer.Migrations(), tenants.Migration(),
		orders.Migration(), couriers.Migration(), billing.Migration(), dispatch.Migration())
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// begin is the product as it stands on a database where others have been.
func begin(pool *pgxpool.Pool, m *mischief) *product {
	p := &product{pool: pool, faults: m, time: time.Now().Truncate(time.Microsecond), keys: tenants.New(pool, tenants.Config{})}
	now := func() time.Time { return p.time }
	out := outbox.New(slices.Concat(contracts.All(), saga.All()), outbox.Config{})
	p.outbox = out
	p.orders = orders.New(pool, out, orders.Config{Now: now})
	p.couriers = couriers.New(pool, out, couriers.Config{Now: now})
	// Everything before is nobody's: a new id is higher than any there is.
	p.log = &log{pool: pool, last: event.NewID(), lanes: map[string][]*kgo.Record{}}
	p.add("orders", p.orders.Subscribe)
	p.add("couriers", func(g *consumer.Group) {
		p.couriers.Subscribe(g)
		assign.ReactCouriers(g, p.couriers)
	})
	fees := billing.New(pool, out, billing.Config{Now: now, Faults: m})
	p.add("billing", func(g *consumer.Group) {
		fees.Subscribe(g)
		assign.ReactBilling(g, fees)
	})
	p.add("dispatch", dispatch.New(pool, out, dispatch.Config{Now: now, Faults: m, Pause: time.Microsecond}).Subscribe)
	return p
}

// courier rides for the tenants from now on.
func (p *product) courier(ctx context.Context, of ...uuid.UUID) (uuid.UUID, error) {
	id := event.NewID()
	_, err := p.couriers.Enroll(ctx, p.keys, couriers.Enrolment{ID: id, Name: "Rui Lima", Vehicle: "MOTORBIKE", Tenants: of})
	if err == nil {
		err = p.duty(ctx, id, couriers.Available)
	}
	return id, err
}

func (p *product) duty(ctx context.Context, id uuid.UUID, to couriers.State) error {
	_, err := p.couriers.SetStatus(event.WithTenant(ctx, tenants.Platform.String()), id, to, nil)
	return err
}

func (p *product) order(ctx context.Context, tenant uuid.UUID) (uuid.UUID, error) {
	o, _, err := p.orders.Create(event.WithTenant(ctx, tenant.String()), tenant, orders.NewOrder{
		Pickup:  orders.Place{Street: "Rua Augusta", Number: "1508", CEP: "01304-001", District: "Consolação", Lat: -23.556312, Lng: -46.658249},
		Dropoff: orders.Place{Street: "Avenida Paulista", Number: "1578", CEP: "01310-200", District: "Bela Vista", Lat: -23.561499, Lng: -46.656001},
		Items:   []orders.Item{{Name: "Pão de queijo", Quantity: 6, UnitPrice: 315}},
	}, "")
	return o.ID, err
}

// overdue says what the observer of sagas does of a step that stands still.
func (p *product) overdue(ctx context.Context, tenant, order uuid.UUID, round int32, step string, d saga.Direction) error {
	ctx = event.WithTenant(ctx, tenant.String())
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		return p.outbox.Add(ctx, tx, &saga.StepOverdue{
			Key: order.String(), Saga: assign.Name, Round: round, Step: step, Direction: d, Asked: 1, DueAt: p.time,
		})
	})
}

// mischief decides what fails: the same attempt always the same way, but for
// compensations, which fail so often and then succeed.
type mischief struct {
	seed    uint64
	percent map[string]uint64
	voids   map[string]int // tries left that fail, by attempt
	failed  bool           // a compensation did, since this was last reset
}

func (m *mischief) Fails(name string, id ...string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + strings.Join(id, "/")))
	hit := (h.Sum64()^m.seed*0x9e3779b97f4a7c15)%100 < m.percent[name]
	if name != faults.CompensationFailure {
		return hit
	}
	attempt := strings.Join(id, "/")
	if _, known := m.voids[attempt]; !known && hit {
		m.voids[attempt] = 2
	}
	if m.voids[attempt] > 0 {
		m.voids[attempt]--
		m.failed = true
		return true
	}
	return false
}

func (*mischief) Delay(string) time.Duration                                { return 0 }
func (*mischief) Poisoned(context.Context, string, uuid.UUID) (bool, error) { return false, nil }
