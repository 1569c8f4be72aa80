package notify

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/push"
)

func routed(t *testing.T, tenant uuid.UUID, d event.Data) []push.Delivery {
	t.Helper()
	rec, env := record(t, tenant.String(), d)
	got, err := Route(&bare{})(t.Context(), rec, env)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func channels(ds []push.Delivery) (names []string) {
	for _, d := range ds {
		names = append(names, d.Channel)
	}
	return names
}

func position(order *uuid.UUID) *contracts.CourierLocationUpdated {
	speed, heading, accuracy := float32(7.25), float32(181.4), float32(9)
	return &contracts.CourierLocationUpdated{
		CourierID: event.NewID(), Seq: 77, Lat: -23.561414999, Lng: -46.655881111,
		SpeedMps: &speed, HeadingDeg: &heading, AccuracyM: &accuracy,
		FixTime: time.Unix(1_800_000_000, 0), ReceivedAt: time.Unix(1_800_000_002, 0), ActiveOrderID: order,
	}
}

func keys(t *testing.T, raw json.RawMessage) (names []string) {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

func dataOf(t *testing.T, m push.Message) json.RawMessage {
	t.Helper()
	var line struct{ Data json.RawMessage }
	if err := json.Unmarshal(m.Data, &line); err != nil {
		t.Fatal(err)
	}
	return line.Data
}

func TestAPositionGoesToItsOrdersTenantAndLink(t *testing.T) {
	tenant, order := event.NewID(), event.NewID()
	d := position(&order)
	got := routed(t, tenant, d)
	if want := []string{TenantChannel(tenant), OrderChannel(order)}; !slices.Equal(channels(got), want) {
		t.Fatalf("goes to %v", channels(got))
	}
	if got[0].Latest != "position/"+order.String() || got[1].Latest == "" {
		t.Errorf("the newest of %q and %q", got[0].Latest, got[1].Latest)
	}
	if k := keys(t, dataOf(t, got[0].Message)); !slices.Equal(k, []string{"courier_id", "fix_time", "heading_deg", "lat", "lng", "order_id"}) {
		t.Errorf("the merchant hears %v", k)
	}
	if k := keys(t, dataOf(t, got[1].Message)); !slices.Equal(k, []string{"fix_time", "heading_deg", "lat", "lng"}) {
		t.Errorf("the public hears %v", k)
	}
	if k := keys(t, got[1].Message.Data); !slices.Equal(k, []string{"data", "time", "type"}) {
		t.Errorf("the public hears %v", k)
	}
	for _, secret := range []string{d.CourierID.String(), order.String(), tenant.String(), "7.25", "77"} {
		if strings.Contains(string(got[1].Message.Data), secret) {
			t.Errorf("the public hears %q in %s", secret, got[1].Message.Data)
		}
	}
	var p place
	if err := json.Unmarshal(dataOf(t, got[1].Message), &p); err != nil {
		t.Fatal(err)
	}
	if p.Lat != -23.56141 || p.Lng != -46.65588 || *p.HeadingDeg != 181 || !p.FixTime.Equal(d.FixTime) {
		t.Errorf("%+v", p)
	}
}

func TestACourierWithoutAnOrderIsSeenByNobody(t *testing.T) {
	if got := routed(t, tenants.Platform, position(nil)); got != nil {
		t.Errorf("goes to %v", channels(got))
	}
	if got := routed(t, event.NewID(), position(nil)); got != nil {
		t.Errorf("goes to %v", channels(got))
	}
}

func TestAnOrdersPositionUnderThePlatformsNameIsHeardByNobody(t *testing.T) {
	order := event.NewID()
	rec, env := record(t, tenants.Platform.String(), position(&order))
	if got, err := Route(&bare{})(t.Context(), rec, env); got != nil {
		t.Errorf("goes to %v: %v", channels(got), err)
	}
	env.Tenant = strings.ToUpper(env.Tenant) + " "
	if got, err := Route(&bare{})(t.Context(), rec, env); got != nil || err == nil {
		t.Errorf("goes to %v: %v", channels(got), err)
	}
}

func TestAWayDeliveredAfterwardsPullsNobodyBack(t *testing.T) {
	order := event.NewID()
	late := position(&order)
	late.ReceivedAt = late.FixTime.Add(fresh + time.Second)
	if got := routed(t, event.NewID(), late); got != nil {
		t.Errorf("goes to %v", channels(got))
	}
	ahead := position(&order)
	ahead.ReceivedAt = ahead.FixTime.Add(-time.Hour)
	if got := routed(t, event.NewID(), ahead); len(got) != 2 {
		t.Errorf("goes to %v", channels(got))
	}
}

func TestACourierIsWokenAndToldNothing(t *testing.T) {
	tenant, order, courier, reason := event.NewID(), event.NewID(), event.NewID(), "went to lunch"
	for _, d := range []event.Data{
		&contracts.CourierNotified{OrderID: order, Version: 1, Attempt: 1, CourierID: courier, FeeID: event.NewID()},
		&contracts.CourierStatusChanged{CourierID: courier, Version: 4, From: "AVAILABLE", To: "PAUSED", Reason: &reason, OrderID: &order},
		&contracts.OrderAssigned{OrderID: order, Version: 5, CourierID: courier, Attempt: 1, FeeID: event.NewID()},
	} {
		got := routed(t, tenant, d)
		call := got[len(got)-1]
		if call.Channel != CourierChannel(courier) || call.Latest == "" {
			t.Fatalf("%T goes to %v", d, channels(got))
		}
		if k := keys(t, call.Message.Data); !slices.Equal(k, []string{"time", "type"}) {
			t.Errorf("the device hears %v", k)
		}
	}
	for _, d := range []event.Data{
		&contracts.CourierNotificationFailed{OrderID: order, Version: 1, Attempt: 1, CourierID: courier, FeeID: event.NewID(), Reason: "no signal"},
	} {
		if got := routed(t, tenant, d); got != nil {
			t.Errorf("%T goes to %v", d, channels(got))
		}
	}
}

func TestThePublicHearsThatThereIsACourierAndNotWho(t *testing.T) {
	tenant := event.NewID()
	d := &contracts.OrderAssigned{
		OrderID: event.NewID(), Version: 4, CourierID: event.NewID(), Attempt: 2, FeeID: event.NewID(),
		PickupETA: time.Unix(1_800_000_000, 0).UTC(), DeliveryETA: time.Unix(1_800_001_000, 0).UTC(),
	}
	got := routed(t, tenant, d)
	if want := []string{TenantChannel(tenant), OrderChannel(d.OrderID), CourierChannel(d.CourierID)}; !slices.Equal(channels(got), want) {
		t.Fatalf("goes to %v", channels(got))
	}
	requireFull(t, got[0].Message, d)
	if k := keys(t, dataOf(t, got[1].Message)); !slices.Equal(k, []string{"delivery_eta", "pickup_eta"}) {
		t.Errorf("the public hears %v", k)
	}
	for _, id := range []uuid.UUID{d.CourierID, d.OrderID, d.FeeID, tenant} {
		if strings.Contains(string(got[1].Message.Data), id.String()) {
			t.Errorf("the public hears %s", id)
		}
	}
}

// push refuses a delivery of a telemetry topic that could be missed.
func TestAllThatTelemetryTopicsTellIsTheNewestOfSomething(t *testing.T) {
	order := event.NewID()
	for _, d := range contracts.All() {
		if !slices.Contains(LatestTopics(), d.Topic) {
			continue
		}
		zero, _ := contracts.New(d.Type)
		switch e := zero.(type) {
		case *contracts.CourierLocationUpdated:
			*e = *position(&order)
		case *contracts.CourierStatusChanged:
			e.CourierID, e.Version, e.From, e.To = event.NewID(), 1, "OFFLINE", "AVAILABLE"
		default:
			t.Errorf("%s: say here what it looks like", d.Type)
			continue
		}
		for _, delivery := range routed(t, event.NewID(), zero) {
			if delivery.Latest == "" {
				t.Errorf("%s to %s could be missed", d.Type, delivery.Channel)
			}
		}
	}
}
