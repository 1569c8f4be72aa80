package assignment

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/logistica/assign"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/dispatch"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/saga"
	sagacontracts "github.com/waybillhq/waybill/saga/contracts"
)

// crowd is the product as it runs: modules in groups of their own, relay,
// observer and broker. Only the registry is a number: it is its own package's to
// test.
type crowd struct {
	*product // without a log of its own
	t        *testing.T
	db       *pgxpool.Pool // the modules'; pool is the test's
	engine   *brokertest.Engine
	admin    *kadm.Client
	flags    *faults.Flags
	groups   map[string]string // group by module
	stops    map[string]func()
}

// productName is the product's connections.
const productName = "the product"

// oneSchema is a registry that knows one schema of each event.
type oneSchema struct{}

func (oneSchema) RegisterText(context.Context, string, string) (int, error) { return 7, nil }

func (oneSchema) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, body, err := registry.SplitHeader(value)
	if err == nil {
		_, err = reader.Decode(body, into)
	}
	return err
}

// impatient tries again what failed sooner than the product does, and never
// gives it up within a test.
var impatient = consumer.Retry{
	Pause: 5 * time.Millisecond, Within: 50 * time.Millisecond,
	Park: 100 * time.Millisecond, ParkFactor: 1, ParkMax: 100 * time.Millisecond, ParkAttempts: 1 << 20,
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	dsn := pgtest.New(t)
	pool, err := pg.Open(t.Context(), dsn, pg.Config{MaxConns: 10})
	must(t, err)
	t.Cleanup(pool.Close)
	db, err := pg.Open(t.Context(), dsn, pg.Config{ApplicationName: productName, MaxConns: 40})
	must(t, err)
	t.Cleanup(db.Close)
	must(t, consumer.Migrate(t.Context(), pool))
	must(t, pg.Migrate(t.Context(), pool, tables.Migration(), saga.Migration(), tenants.Migration(), faults.Migration(),
		orders.Migration(), couriers.Migration(), billing.Migration(), dispatch.Migration()))
	must(t, tables.EnsureDays(t.Context(), pool, time.Now()))
	quiet := slog.New(slog.DiscardHandler)
	c := &crowd{
		product: &product{
			pool: pool, keys: tenants.New(pool, tenants.Config{}),
			outbox: outbox.New(slices.Concat(contracts.All(), sagacontracts.All()), outbox.Config{}),
		},
		t: t, db: db, engine: brokertest.New(t),
		flags: faults.New(db, faults.Config{Every: 20 * time.Millisecond, Logger: quiet}),
		stops: map[string]func(){}, groups: map[string]string{},
	}
	for _, module := range modules {
		c.groups[module] = brokertest.Group(t, module)
	}
	c.orders = orders.New(pool, c.outbox, orders.Config{})
	c.couriers = couriers.New(pool, c.outbox, couriers.Config{Logger: quiet})
	c.openTopics()
	must(t, c.outbox.Declare(t.Context(), pool)) // without it the relay waits for schemas it does not know
	c.run("faults", c.flags.Run)
	c.run("relay", relay.New(db, c.engine.Config.Client, oneSchema{}, relay.Config{Logger: quiet}).Run)
	for _, module := range modules {
		c.run(module, c.module(module, db))
	}
	return c
}

// modules have a group each; the observer of sagas is one of them here.
var modules = []string{"orders", "couriers", "billing", "dispatch", "saga"}

// module is one of a module's processes, on connections of db, to be run.
func (c *crowd) module(name string, db *pgxpool.Pool) func(context.Context) error {
	c.t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	g := consumer.New(consumer.Deps{DB: db, Client: c.engine.Config.Client, Decoder: oneSchema{}},
		consumer.Config{Group: c.groups[name], Workers: 4, FlushEvery: 100 * time.Millisecond, Retry: impatient, Logger: quiet})
	switch name {
	case "saga":
		// Deadlines that are met, mostly, and asked for where a fault holds a step up.
		o, err := saga.New(saga.Deps{DB: db, Client: c.engine.Config.Client, Decoder: oneSchema{}, Outbox: c.outbox},
			saga.Config{Group: c.groups[name], Every: 100 * time.Millisecond, Logger: quiet}, assign.Saga(assign.Config{Step: 20 * time.Second}))
		must(c.t, err)
		return o.Run
	case "orders":
		orders.New(db, c.outbox, orders.Config{}).Subscribe(g)
	case "couriers":
		m := couriers.New(db, c.outbox, couriers.Config{Patience: 20 * time.Second, Sweep: 200 * time.Millisecond, Logger: quiet})
		m.Subscribe(g)
		assign.ReactCouriers(g, m)
		return func(ctx context.Context) error {
			sweep, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- m.Run(sweep) }()
			err := g.Run(ctx)
			stop()
			return errors.Join(err, <-ended)
		}
	case "billing":
		l := billing.New(db, c.outbox, billing.Config{Faults: c.flags})
		l.Subscribe(g)
		assign.ReactBilling(g, l)
	case "dispatch":
		dispatch.New(db, c.outbox, dispatch.Config{Faults: c.flags}).Subscribe(g)
	}
	return g.Run
}

// run runs a part until it is stopped or the test ends.
func (c *crowd) run(name string, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	c.stops[name] = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
	})
	c.t.Cleanup(c.stops[name])
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *crowd) number(tenant uuid.UUID, sql string, args ...any) (n int) {
	c.t.Helper()
	must(c.t, pg.InTenant(c.t.Context(), c.pool, tenant.String(), func(tx pgx.Tx) error {
		return tx.QueryRow(c.t.Context(), sql, args...).Scan(&n)
	}))
	return n
}

// cut ends all connections of an application to the database at once, and with
// them whatever transactions are under way.
func (c *crowd) cut(application string) {
	c.t.Helper()
	n := c.number(uuid.Max, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1`, application)
	if n == 0 {
		c.t.Error("there was no connection to cut")
	}
}
