package orders_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// bed is a store on a database of its own, with the real outbox.
type bed struct {
	*orders.Store
	pool *pgxpool.Pool
}

func newBed(t testing.TB, cfg orders.Config) bed {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.Migrated(t, tables.Migration(), orders.Migration()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return bed{orders.New(pool, outbox.New(contracts.All(), outbox.Config{}), cfg), pool}
}

func (b bed) create(t testing.TB, tenant uuid.UUID) orders.Order {
	t.Helper()
	o, _, err := b.Create(t.Context(), tenant, newOrder(), "")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// walk moves an order through states, each by who may.
func (b bed) walk(t testing.TB, tenant, id uuid.UUID, states ...orders.State) (o orders.Order) {
	t.Helper()
	o, err := b.Get(t.Context(), tenant, id)
	for _, to := range states {
		if err == nil {
			o, err = b.Transition(t.Context(), tenant, id, orders.Move{To: to, Actor: mover(o.State, to)})
		}
		if err != nil {
			t.Fatalf("move to %s: %v", to, err)
		}
	}
	return o
}

// mover is who makes a step; the system where nobody does.
func mover(from, to orders.State) orders.Actor {
	for _, s := range orders.Steps() {
		if s.From == from && s.To == to && !slices.Contains(s.By, orders.System) {
			return orders.Merchant
		}
	}
	return orders.System
}

type stored struct {
	Type     string
	Sequence int64
	Tenant   string
	Body     []byte
}

func (b bed) events(t testing.TB, id uuid.UUID) []stored {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `SELECT type, sequence, tenant, body FROM waybill.outbox_events WHERE subject = $1 ORDER BY sequence`, id.String())
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func newOrder() orders.NewOrder {
	return orders.NewOrder{
		Pickup:   orders.Place{Street: "Rua Augusta", Number: "1508", CEP: "01304-001", District: "Consolação", Lat: -23.556312, Lng: -46.658249},
		Dropoff:  orders.Place{Street: "Avenida Paulista", Number: "1578", CEP: "01310-200", District: "Bela Vista", Lat: -23.561499, Lng: -46.656001, Reference: "Portaria azul"},
		Customer: orders.Customer{Name: "Ana Beatriz Moura", Phone: "+55 11 91234-5678"},
		Items:    []orders.Item{{Name: "Pão de queijo", Quantity: 6, UnitPrice: 315}, {Name: "Café", Quantity: 2, UnitPrice: 950}},
	}
}

var journey = []orders.State{
	orders.Assigning, orders.Assigned, orders.PickupOngoing, orders.ArrivedAtMerchant,
	orders.PickedUp, orders.DeliveryOngoing, orders.ArrivedAtCustomer, orders.Delivered,
}

func TestEveryEventOfAnOrderHasTheNextVersion(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	last := b.walk(t, tenant, o.ID, journey...)
	got := b.events(t, o.ID)
	if len(got) != 10 || last.Version != 10 || last.State != orders.Delivered {
		t.Fatalf("%d events, order at version %d in %s", len(got), last.Version, last.State)
	}
	for i, e := range got {
		if e.Sequence != int64(i+1) || e.Tenant != tenant.String() {
			t.Errorf("event %d: %s sequence %d of tenant %s", i, e.Type, e.Sequence, e.Tenant)
		}
	}
	if got[0].Type != "logistica.orders.OrderCreated" || got[9].Type != "logistica.orders.OrderDelivered" || got[8].Type != "logistica.orders.OrderStatusChanged" {
		t.Errorf("types: %v %v %v", got[0].Type, got[8].Type, got[9].Type)
	}
}

func TestEventsCarryNoPersonalData(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	b.walk(t, tenant, o.ID, journey...)
	for _, e := range b.events(t, o.ID) {
		for _, secret := range []string{"Ana", "Moura", "91234", "Paulista", "1578", "01310", "Portaria", "Augusta"} {
			if strings.Contains(string(e.Body), secret) {
				t.Errorf("%s carries %q", e.Type, secret)
			}
		}
	}
	var created contracts.OrderCreated
	if _, err := created.EventContract().Schema.Decode(b.events(t, o.ID)[0].Body, &created); err != nil {
		t.Fatal(err)
	}
	if created.Dropoff != (contracts.CoarsePlace{District: "Bela Vista", Lat: -23.561, Lng: -46.656}) || created.Total != 6*315+2*950 {
		t.Errorf("event says %+v", created)
	}
}

func TestRefusedEventLeavesNoOrder(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	tiny := orders.New(b.pool, outbox.New(contracts.All(), outbox.Config{MaxBytes: 10}), orders.Config{})
	if _, _, err := tiny.Create(t.Context(), tenant, newOrder(), "k"); err == nil {
		t.Fatal("created")
	}
	list, _, err := b.List(t.Context(), tenant, orders.Query{})
	if err != nil || len(list) != 0 {
		t.Fatalf("list: %v %v", list, err)
	}
	if _, repeated, err := b.Create(t.Context(), tenant, newOrder(), "k"); err != nil || repeated {
		t.Fatalf("the key was spent: repeated %v, %v", repeated, err)
	}
}

func TestSameKeyRacingMakesOneOrder(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	const racers = 50
	got, fresh := make([]orders.Order, racers), make([]bool, racers)
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			o, repeated, err := b.Create(t.Context(), tenant, newOrder(), "the key")
			if err != nil {
				t.Error(err)
			}
			got[i], fresh[i] = o, !repeated
		})
	}
	all.Wait()
	made := 0
	for i := range racers {
		if fresh[i] {
			made++
		}
		if fmt.Sprint(got[i]) != fmt.Sprint(got[0]) {
			t.Errorf("racer %d was answered %+v, racer 0 %+v", i, got[i], got[0])
		}
	}
	if events := b.events(t, got[0].ID); made != 1 || len(events) != 1 {
		t.Errorf("%d made, %d events", made, len(events))
	}
	if list, _, _ := b.List(t.Context(), tenant, orders.Query{}); len(list) != 1 {
		t.Errorf("%d orders", len(list))
	}
}

func TestRepeatedRequestIsAnsweredAsTheFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	b, tenant := newBed(t, orders.Config{Now: func() time.Time { return now }}), event.NewID()
	req := newOrder()
	promised := now.Add(time.Hour)
	req.PromisedAt = &promised
	first, _, err := b.Create(t.Context(), tenant, req, "k")
	if err != nil {
		t.Fatal(err)
	}
	b.walk(t, tenant, first.ID, orders.Assigning)
	now = now.Add(2 * time.Hour) // the promise has passed by now
	local := promised.In(time.FixedZone("BRT", -3*3600))
	req.PromisedAt, req.Dropoff.CEP = &local, "01310200"
	again, repeated, err := b.Create(t.Context(), tenant, req, "k")
	if err != nil || !repeated {
		t.Fatalf("repeated %v: %v", repeated, err)
	}
	first.PromisedAt, again.PromisedAt = nil, nil
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
	req = newOrder()
	req.Items[0].Quantity++
	if _, _, err := b.Create(t.Context(), tenant, req, "k"); !errors.Is(err, orders.ErrKeyReused) {
		t.Errorf("other request: %v", err)
	}
	if _, repeated, err := b.Create(t.Context(), event.NewID(), newOrder(), "k"); err != nil || repeated {
		t.Errorf("another tenant's key: repeated %v, %v", repeated, err)
	}
}

func TestConcurrentMovesOfOneOrderLetOneThrough(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	var mu sync.Mutex
	var moved, refused int
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := b.Transition(t.Context(), tenant, o.ID, orders.Move{To: orders.Assigning, Actor: orders.System})
			var f *orders.ForbiddenTransition
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				moved++
			case errors.As(err, &f) && f.From == orders.Assigning && f.To == orders.Assigning:
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if moved != 1 || refused != 19 || len(b.events(t, o.ID)) != 2 {
		t.Errorf("%d moved, %d refused, %d events", moved, refused, len(b.events(t, o.ID)))
	}
}

func TestTransitionRefusals(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	move := func(tenant, id uuid.UUID, m orders.Move) error {
		m.Actor = orders.System
		_, err := b.Transition(t.Context(), tenant, id, m)
		return err
	}
	var forbidden *orders.ForbiddenTransition
	if err := move(tenant, o.ID, orders.Move{To: orders.Delivered}); !errors.As(err, &forbidden) ||
		!slices.Equal(forbidden.Allowed, []orders.State{orders.Assigning, orders.Unassignable}) {
		t.Errorf("forbidden: %v", err)
	}
	var conflict *orders.VersionConflict
	if err := move(tenant, o.ID, orders.Move{To: orders.Assigning, Expected: 7}); !errors.As(err, &conflict) || conflict.Current != 1 {
		t.Errorf("conflict: %v", err)
	}
	var invalid *orders.Invalid
	if err := move(tenant, o.ID, orders.Move{To: "NOWHERE", Reason: strings.Repeat("é", orders.MaxReason+1)}); !errors.As(err, &invalid) || len(invalid.Fields) != 2 {
		t.Errorf("invalid: %v", err)
	}
	for _, id := range []uuid.UUID{uuid.Nil, event.NewID()} {
		if err := move(tenant, id, orders.Move{To: orders.Assigning}); !errors.Is(err, orders.ErrNotFound) {
			t.Errorf("unknown order: %v", err)
		}
	}
	if err := move(event.NewID(), o.ID, orders.Move{To: orders.Assigning}); !errors.Is(err, orders.ErrNotFound) {
		t.Errorf("another tenant's order: %v", err)
	}
	if len(b.events(t, o.ID)) != 1 {
		t.Error("a refusal published something")
	}
}

func TestListWalksAllPagesNewestFirst(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	var want []uuid.UUID
	for i := range 25 {
		o := b.create(t, tenant)
		b.create(t, event.NewID()) // somebody else's in between
		if i%2 == 0 {
			b.walk(t, tenant, o.ID, orders.Cancelled)
		}
		want = append(want, o.ID)
	}
	slices.Reverse(want)
	if got := pages(t, b, tenant, orders.Query{Limit: 4}); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if got := pages(t, b, tenant, orders.Query{Limit: 5, State: orders.Cancelled}); len(got) != 13 {
		t.Errorf("%d cancelled", len(got))
	}
}

func pages(t *testing.T, b bed, tenant uuid.UUID, q orders.Query) (ids []uuid.UUID) {
	t.Helper()
	for {
		list, more, err := b.List(t.Context(), tenant, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			ids = append(ids, o.ID)
		}
		if !more {
			return ids
		}
		q.After = list[len(list)-1].ID
	}
}

func TestTrackingShowsTheCourseOfOneOrder(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	b.create(t, tenant)
	b.walk(t, tenant, o.ID, orders.Assigning, orders.Created, orders.Assigning, orders.Assigned)
	got, err := b.Track(t.Context(), o.TrackingToken)
	if err != nil {
		t.Fatal(err)
	}
	var course []orders.State
	for _, m := range got.Timeline {
		course = append(course, m.State)
	}
	want := []orders.State{orders.Created, orders.Assigning, orders.Created, orders.Assigning, orders.Assigned}
	if got.OrderID != o.ID || got.Version != 5 || !slices.Equal(course, want) || len(got.Items) != 2 {
		t.Errorf("tracking says %+v", got)
	}
	for _, token := range []string{"", "'", strings.Repeat("x", 32), o.TrackingToken[:31], o.TrackingToken + "A", o.ID.String(), "%", "\x00"} {
		if _, err := b.Track(t.Context(), token); !errors.Is(err, orders.ErrNotFound) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestForgetKeysForgetsOnlyOldOnes(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	old := orders.New(b.pool, outbox.New(contracts.All(), outbox.Config{}), orders.Config{
		Now: func() time.Time { return time.Now().Add(-orders.KeepKeys - time.Minute) },
	})
	for _, s := range []*orders.Store{old, b.Store} {
		for i := range 3 {
			if _, _, err := s.Create(t.Context(), tenant, newOrder(), fmt.Sprintf("%p-%d", s, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := b.ForgetKeys(t.Context()); n != 3 || err != nil {
		t.Fatalf("forgot %d: %v", n, err)
	}
	if _, repeated, err := b.Create(t.Context(), tenant, newOrder(), fmt.Sprintf("%p-%d", b.Store, 0)); err != nil || !repeated {
		t.Errorf("a young key: repeated %v, %v", repeated, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBed(t, orders.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
