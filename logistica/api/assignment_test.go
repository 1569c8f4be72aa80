package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
)

// assigned is an order that got a courier by what other modules said.
func (m merchant) assigned(t *testing.T) (o api.Order, courier uuid.UUID) {
	t.Helper()
	o = m.create(t)
	courier, fee := event.NewID(), event.NewID()
	env, now := event.Envelope{Tenant: m.id.String(), Time: time.Now()}, time.Now().UTC().Truncate(time.Microsecond)
	err := pgx.BeginFunc(t.Context(), m.pool, func(tx pgx.Tx) error {
		return errors.Join(
			m.store.CourierReserved(t.Context(), tx, event.Of[contracts.CourierReserved]{Envelope: env, Data: contracts.CourierReserved{
				OrderID: o.ID, Attempt: 1, CourierID: courier, VehicleType: contracts.VehicleTypeBicycle, ReservedUntil: now.Add(time.Minute),
				PickupETA: now.Add(time.Minute), DeliveryETA: now.Add(time.Hour), DistanceM: 2700,
			}}),
			m.store.PlatformFeeBilled(t.Context(), tx, event.Of[contracts.PlatformFeeBilled]{Envelope: env, Data: contracts.PlatformFeeBilled{
				OrderID: o.ID, Attempt: 1, CourierID: courier, FeeID: fee, Amount: 150, Currency: "BRL",
			}}),
			m.store.CourierNotified(t.Context(), tx, event.Of[contracts.CourierNotified]{Envelope: env, Data: contracts.CourierNotified{
				OrderID: o.ID, Attempt: 1, CourierID: courier, FeeID: fee,
			}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return m.read(t, o), courier
}

// book is couriers as a test says, and remembers what was asked of it.
type book struct {
	mu         sync.Mutex
	cards      map[uuid.UUID]api.CourierCard
	fails      error
	reassigned []string
}

func (b *book) Cards(_ context.Context, _ uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]api.CourierCard, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := map[uuid.UUID]api.CourierCard{}
	for _, id := range ids {
		if card, ok := b.cards[id]; ok {
			known[id] = card
		}
	}
	return known, b.fails
}

func (b *book) Reassign(_ context.Context, tenant, order uuid.UUID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reassigned = append(b.reassigned, tenant.String()+" "+order.String())
	return b.fails
}

func (b *book) wire(d *api.Deps, _ *api.Config) {
	d.Couriers, d.Reassigner = b, b
}

func (b *book) know(id uuid.UUID, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cards = map[uuid.UUID]api.CourierCard{id: {ID: id, Name: name, Vehicle: "MOTORBIKE"}}
}

func (b *book) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = err
}

func TestAnOrderShowsItsCourierAndFee(t *testing.T) {
	t.Parallel()
	couriers := &book{}
	m := newBed(t, couriers.wire).merchant(t, "Padaria")
	fresh := m.create(t)
	if fresh.Courier != nil || fresh.Fee != nil || fresh.Attempt != 1 || fresh.OpenDelivery != "PENDING" || len(fresh.DeliveryCode) != 4 {
		t.Errorf("%+v", fresh)
	}
	o, courier := m.assigned(t)
	if o.Courier == nil || *o.Courier != (api.CourierCard{ID: courier, Vehicle: "BICYCLE"}) {
		t.Errorf("a courier nobody knows is %+v", o.Courier)
	}
	couriers.know(courier, "João da Silva")
	o = m.read(t, o)
	var list struct {
		Orders []api.Order
		Next   string `json:"next_cursor"`
	}
	m.ask(t, "GET", "/v1/orders?state=ASSIGNED", "").into(t, http.StatusOK, &list)
	for name, got := range map[string]api.Order{"read": o, "listed": list.Orders[0]} {
		if *got.Courier != (api.CourierCard{ID: courier, Name: "João da Silva", Vehicle: "MOTORBIKE"}) || got.Fee == nil || got.Fee.Amount != 150 ||
			got.PickupETA == nil || got.DeliveryETA == nil || *got.DistanceM != 2700 || got.OpenDelivery != "ACCEPTED" || got.State != "ASSIGNED" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	couriers.fail(errors.New("secret at couriers.internal"))
	if o = m.read(t, o); o.Courier == nil || o.Courier.ID != courier || o.State != "ASSIGNED" {
		t.Errorf("without names: %+v", o)
	}
	if o = m.move(t, o, "PICKUP_ONGOING"); o.State != "PICKUP_ONGOING" {
		t.Errorf("moved: %+v", o)
	}
}

func TestATrackingLinkShowsTheCourierWhileOnTheWay(t *testing.T) {
	t.Parallel()
	couriers := &book{}
	m := newBed(t, couriers.wire).merchant(t, "Padaria")
	o, courier := m.assigned(t)
	couriers.know(courier, "João da Silva")
	track := func() (got api.Tracking, raw string) {
		a := m.bed.ask(t, "GET", "/v1/track/"+o.TrackingToken, "")
		a.into(t, http.StatusOK, &got)
		return got, string(a.body)
	}
	got, raw := track()
	if got.Courier == nil || *got.Courier != (api.TrackedCourier{FirstName: "João", Vehicle: "MOTORBIKE"}) || got.ETA == nil || got.PickupETA == nil ||
		got.DeliveryCode != o.DeliveryCode {
		t.Errorf("%s", raw)
	}
	for _, secret := range []string{"Silva", courier.String(), "fee", "distance"} {
		if strings.Contains(raw, secret) {
			t.Errorf("the public sees %q: %s", secret, raw)
		}
	}
	couriers.fail(errors.New("secret at couriers.internal"))
	if got, raw = track(); got.State != "ASSIGNED" || strings.Contains(raw, "secret") {
		t.Errorf("without couriers: %s", raw)
	}
	couriers.fail(nil)
	o = m.move(t, o, "CANCELLED")
	if got, raw = track(); got.Courier != nil || got.DeliveryCode != "" || got.ETA != nil {
		t.Errorf("after the end: %s", raw)
	}
}

func TestReassigningAsksCouriersToLetGo(t *testing.T) {
	t.Parallel()
	couriers := &book{}
	b := newBed(t, couriers.wire)
	m, other := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	o, _ := m.assigned(t)
	path := "/v1/orders/" + o.ID.String() + "/reassign"
	other.ask(t, "POST", path, "").problem(t, http.StatusNotFound)
	var answered api.Order
	m.ask(t, "POST", path, "").into(t, http.StatusAccepted, &answered)
	if fmt.Sprint(couriers.reassigned) != fmt.Sprint([]string{m.id.String() + " " + o.ID.String()}) || answered.State != "ASSIGNED" {
		t.Errorf("asked %v, answered %+v", couriers.reassigned, answered)
	}
	m.move(t, o, "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP")
	p := m.ask(t, "POST", path, "").problem(t, http.StatusConflict)
	if p.From != "PICKED_UP" || p.Type != "/docs#forbidden-transition" || len(couriers.reassigned) != 1 {
		t.Errorf("%+v, asked %v", p, couriers.reassigned)
	}
}

func TestReassigningWithoutCouriersSaysSo(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	o, _ := m.assigned(t)
	m.ask(t, "POST", "/v1/orders/"+o.ID.String()+"/reassign", "").problem(t, http.StatusServiceUnavailable)
}

func TestTheMerchantResetsTheCodeOrConfirms(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	o, courier := m.assigned(t)
	o = m.move(t, o, "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER")
	wrong := "0000"
	if m.read(t, o).DeliveryCode == wrong {
		wrong = "0001"
	}
	for range orders.MaxCodeTries {
		if _, err := m.store.MoveAsCourier(t.Context(), courier, o.ID, orders.Move{To: orders.Delivered}, wrong); err == nil {
			t.Fatal("delivered")
		}
	}
	if o = m.read(t, o); o.CodeTries != orders.MaxCodeTries {
		t.Errorf("%d tries", o.CodeTries)
	}
	code := o.DeliveryCode
	m.ask(t, "POST", "/v1/orders/"+o.ID.String()+"/delivery-code/reset", "").into(t, http.StatusOK, &o)
	if o.CodeTries != 0 || o.DeliveryCode != code {
		t.Errorf("reset to %+v", o)
	}
	if o = m.move(t, o, "DELIVERED"); o.Proof != "MERCHANT" || o.OpenDelivery != "ORDER_DELIVERED" {
		t.Errorf("%+v", o)
	}
}

func TestTheDocumentNamesWhatAMerchantMayDo(t *testing.T) {
	t.Parallel()
	page := string(newBed(t).ask(t, "GET", "/docs", "").body)
	for _, text := range []string{"UNASSIGNABLE to CREATED or CANCELLED", "CREATED to CANCELLED,", "RETURNING to RETURNED", `id="delivery-code"`} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
}
