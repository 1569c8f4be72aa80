package analytics

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func newModel(t *testing.T) *Model {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pg.Migrate(t.Context(), pool, Migration()); err != nil {
		t.Fatal(err)
	}
	return New(pool)
}

// give hands an event to the model in a transaction of its own, as a consumer
// does, without the consumer's memory of what was handled.
func give[E event.Data](ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID, data E, h func(context.Context, pgx.Tx, event.Of[E]) error) error {
	ctx = event.WithTenant(ctx, tenant.String())
	e := event.Of[E]{Envelope: event.Envelope{Tenant: tenant.String(), Subject: data.EventKey(), Sequence: data.EventSequence()}, Data: data}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return h(ctx, tx, e) })
}

func (m *Model) created(t *testing.T, tenant, order uuid.UUID) {
	t.Helper()
	if err := give(t.Context(), m.pool, tenant, contracts.OrderCreated{OrderID: order, Version: 1}, m.Created); err != nil {
		t.Fatal(err)
	}
}

func changed(order uuid.UUID, version int64, from, to contracts.OrderState) contracts.OrderStatusChanged {
	return contracts.OrderStatusChanged{OrderID: order, Version: version, From: from, To: to}
}

func (m *Model) requireCounts(t *testing.T, tenant uuid.UUID, want map[string]int64) {
	t.Helper()
	got, err := m.Counts(t.Context(), tenant)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v (%v)", got, want, err)
	}
}

func TestCountsFollowTheEvents(t *testing.T) {
	t.Parallel()
	m, tenant := newModel(t), event.NewID()
	m.requireCounts(t, tenant, map[string]int64{})
	a, b := event.NewID(), event.NewID()
	m.created(t, tenant, a)
	m.created(t, tenant, b)
	m.created(t, event.NewID(), event.NewID()) // another tenant's
	m.requireCounts(t, tenant, map[string]int64{"CREATED": 2})
	if err := give(t.Context(), m.pool, tenant, changed(a, 2, "CREATED", "DELIVERED"), m.StatusChanged); err != nil {
		t.Fatal(err)
	}
	if err := give(t.Context(), m.pool, tenant, contracts.OrderDelivered{OrderID: a, Version: 3}, m.Delivered); err != nil {
		t.Fatal(err)
	}
	m.requireCounts(t, tenant, map[string]int64{"CREATED": 1, "DELIVERED": 1})
}

// An order may look for a courier many times; each time it is counted where it
// stands, and the event of its assignment takes a version without a count.
func TestASearchBegunAnewIsCountedOnce(t *testing.T) {
	t.Parallel()
	m, tenant, order := newModel(t), event.NewID(), event.NewID()
	m.created(t, tenant, order)
	version := int64(1)
	move := func(from, to contracts.OrderState) {
		version++
		if err := give(t.Context(), m.pool, tenant, changed(order, version, from, to), m.StatusChanged); err != nil {
			t.Fatalf("%s → %s: %v", from, to, err)
		}
		if to == "ASSIGNED" {
			version++
			if err := give(t.Context(), m.pool, tenant, contracts.OrderAssigned{OrderID: order, Version: version}, m.Assigned); err != nil {
				t.Fatal(err)
			}
		}
		m.requireCounts(t, tenant, map[string]int64{string(to): 1})
	}
	for _, last := range []contracts.OrderState{"ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT"} {
		move("CREATED", "ASSIGNING")
		move("ASSIGNING", "ASSIGNED")
		at := contracts.OrderState("ASSIGNED")
		for _, to := range []contracts.OrderState{"PICKUP_ONGOING", "ARRIVED_AT_MERCHANT"} {
			if at != last {
				move(at, to)
				at = to
			}
		}
		move(at, "CREATED")
	}
	move("CREATED", "ASSIGNING")
	move("ASSIGNING", "UNASSIGNABLE")
	move("UNASSIGNABLE", "CREATED")
	var loud *OutOfOrder
	if err := give(t.Context(), m.pool, tenant, contracts.OrderAssigned{OrderID: order, Version: version}, m.Assigned); !errors.As(err, &loud) {
		t.Errorf("assigned twice: %v", err)
	}
}

func TestRepetitionAndGapsAreLoudAndCountNothing(t *testing.T) {
	t.Parallel()
	m, tenant, order := newModel(t), event.NewID(), event.NewID()
	m.created(t, tenant, order)
	if err := give(t.Context(), m.pool, tenant, changed(order, 2, "CREATED", "ASSIGNING"), m.StatusChanged); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"created twice":   give(t.Context(), m.pool, tenant, contracts.OrderCreated{OrderID: order, Version: 1}, m.Created),
		"created later":   give(t.Context(), m.pool, tenant, contracts.OrderCreated{OrderID: event.NewID(), Version: 2}, m.Created),
		"changed twice":   give(t.Context(), m.pool, tenant, changed(order, 2, "CREATED", "ASSIGNING"), m.StatusChanged),
		"a version left":  give(t.Context(), m.pool, tenant, changed(order, 4, "ASSIGNING", "ASSIGNED"), m.StatusChanged),
		"another state":   give(t.Context(), m.pool, tenant, changed(order, 3, "ASSIGNED", "DELIVERED"), m.StatusChanged),
		"never created":   give(t.Context(), m.pool, tenant, changed(event.NewID(), 2, "ASSIGNING", "ASSIGNED"), m.StatusChanged),
		"delivered early": give(t.Context(), m.pool, tenant, contracts.OrderDelivered{OrderID: order, Version: 5}, m.Delivered),
		"another tenant":  give(t.Context(), m.pool, event.NewID(), changed(order, 3, "ASSIGNING", "ASSIGNED"), m.StatusChanged),
	} {
		var loud *OutOfOrder
		if !errors.As(err, &loud) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.requireCounts(t, tenant, map[string]int64{"ASSIGNING": 1})
	if err := give(t.Context(), m.pool, uuid.Nil, changed(order, 3, "ASSIGNING", "ASSIGNED"), m.StatusChanged); err == nil {
		t.Error("no tenant")
	}
}

// Handlers that move many orders to and fro at once must neither wait for each
// other in a ring nor lose a count.
func TestConcurrentHandlersLoseNoCount(t *testing.T) {
	t.Parallel()
	m, tenant := newModel(t), event.NewID()
	const orders, moves = 40, 12
	states := []contracts.OrderState{"CREATED", "ASSIGNING", "ASSIGNED"}
	want, mu, all := map[string]int64{}, sync.Mutex{}, sync.WaitGroup{}
	for range orders {
		all.Go(func() {
			order, at := event.NewID(), states[0]
			if err := give(t.Context(), m.pool, tenant, contracts.OrderCreated{OrderID: order, Version: 1}, m.Created); err != nil {
				t.Error(err)
			}
			for v := range int64(moves) {
				to := states[rand.IntN(len(states))]
				if err := give(t.Context(), m.pool, tenant, changed(order, v+2, at, to), m.StatusChanged); err != nil {
					t.Error(err)
				}
				at = to
			}
			mu.Lock()
			defer mu.Unlock()
			want[string(at)]++
		})
	}
	all.Wait()
	m.requireCounts(t, tenant, want)
}

func TestRowLevelSecurityHoldsBeneathEveryStatement(t *testing.T) {
	t.Parallel()
	m, ours := newModel(t), event.NewID()
	m.created(t, ours, event.NewID())
	m.created(t, event.NewID(), event.NewID())
	for _, table := range []string{"analytics.order_state", "analytics.order_count", "analytics.orders_by_state"} {
		var mine, nobodys int
		count := func(n *int) func(pgx.Tx) error {
			return func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(n) }
		}
		if err := pg.InTenant(t.Context(), m.pool, ours.String(), count(&mine)); err != nil {
			t.Fatal(err)
		}
		if err := pgx.BeginFunc(t.Context(), m.pool, count(&nobodys)); err != nil {
			t.Fatal(err)
		}
		if mine != 1 || nobodys != 0 {
			t.Errorf("%s shows %d to its tenant, %d to nobody", table, mine, nobodys)
		}
	}
}
