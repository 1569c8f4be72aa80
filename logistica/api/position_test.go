package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tracking"
	"github.com/waybillhq/waybill/pg"
)

// tracked is a bed whose API knows where couriers are.
type tracked struct {
	*bed
	tracker *tracking.Tracker
}

func newTracked(t *testing.T) tracked {
	t.Helper()
	pool := database(t)
	if err := pg.Migrate(t.Context(), pool, tracking.Migration()); err != nil {
		t.Fatal(err)
	}
	tracker := tracking.New(pool, tracking.Config{})
	return tracked{newBedOn(t, pool, func(d *api.Deps, _ *api.Config) { d.Positions = tracker }), tracker}
}

// out has a courier ride for an order of m's, three fixes long.
func (b tracked) out(t *testing.T, m merchant, o api.Order) (courier uuid.UUID) {
	t.Helper()
	courier = event.NewID()
	env := event.Envelope{Tenant: m.id.String(), Time: time.Now().Add(-time.Hour)}
	heading := float32(90)
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if err := b.tracker.Created(t.Context(), tx, event.Of[contracts.OrderCreated]{Envelope: env, Data: contracts.OrderCreated{
			OrderID: o.ID, Pickup: contracts.CoarsePlace{Lat: o.Pickup.Lat, Lng: o.Pickup.Lng},
			Dropoff: contracts.CoarsePlace{Lat: o.Dropoff.Lat, Lng: o.Dropoff.Lng},
		}}); err != nil {
			return err
		}
		if err := b.tracker.Assigned(t.Context(), tx, event.Of[contracts.OrderAssigned]{Envelope: env, Data: contracts.OrderAssigned{
			OrderID: o.ID, CourierID: courier, Version: 4,
		}}); err != nil {
			return err
		}
		var fixes []event.Of[contracts.CourierLocationUpdated]
		for n := range 3 {
			at := time.Now().Add(time.Duration(n-3) * 5 * time.Second)
			fixes = append(fixes, event.Of[contracts.CourierLocationUpdated]{Data: contracts.CourierLocationUpdated{
				CourierID: courier, Seq: int64(n), Lat: -23.5505, Lng: -46.6333 + float64(n)/1000,
				HeadingDeg: &heading, FixTime: at, ReceivedAt: at,
			}})
		}
		return b.tracker.Located(t.Context(), tx, fixes)
	})
	if err != nil {
		t.Fatal(err)
	}
	return courier
}

func (b tracked) ended(t *testing.T, m merchant, o api.Order) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		return b.tracker.StatusChanged(t.Context(), tx, event.Of[contracts.OrderStatusChanged]{
			Envelope: event.Envelope{Tenant: m.id.String()},
			Data:     contracts.OrderStatusChanged{OrderID: o.ID, Version: 9, To: "DELIVERED"},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAMerchantSeesItsCourierWhileTheOrderIsOut(t *testing.T) {
	t.Parallel()
	b := newTracked(t)
	m, other := b.merchant(t, "Padaria"), b.merchant(t, "Mercado")
	o := m.create(t)
	path := "/v1/orders/" + o.ID.String() + "/position"
	if a := m.ask(t, "GET", path, ""); a.status != http.StatusNoContent || len(a.body) > 0 {
		t.Fatalf("before: %d %s", a.status, a.body)
	}
	courier := b.out(t, m, o)
	var p api.Position
	m.ask(t, "GET", path, "").into(t, http.StatusOK, &p)
	if p.CourierID != courier || p.Lat != -23.5505 || p.ETA == nil || p.Trail != nil || *p.HeadingDeg != 90 {
		t.Errorf("%+v", p)
	}
	m.ask(t, "GET", path+"?trail=true", "").into(t, http.StatusOK, &p)
	if len(p.Trail) != 3 || p.Trail[2].FixTime != p.FixTime {
		t.Errorf("the way is %+v", p.Trail)
	}
	unknown := other.ask(t, "GET", "/v1/orders/"+event.NewID().String()+"/position", "", "X-Request-Id", "same")
	if a := other.ask(t, "GET", path, "", "X-Request-Id", "same"); a.status != http.StatusNotFound || string(a.body) != string(unknown.body) {
		t.Errorf("another merchant: %d %s, of what does not exist %s", a.status, a.body, unknown.body)
	}
	if a := b.ask(t, "GET", path, ""); a.status != http.StatusUnauthorized {
		t.Errorf("nobody: %d", a.status)
	}
	b.ended(t, m, o)
	if a := m.ask(t, "GET", path, ""); a.status != http.StatusNoContent {
		t.Errorf("after: %d %s", a.status, a.body)
	}
}

func TestATrackingLinkShowsTheCourierWhileTheOrderIsOut(t *testing.T) {
	t.Parallel()
	b := newTracked(t)
	m := b.merchant(t, "Padaria")
	o, idle := m.create(t), m.create(t)
	courier := b.out(t, m, o)
	var view api.Tracking
	a := b.ask(t, "GET", "/v1/track/"+o.TrackingToken, "")
	a.into(t, http.StatusOK, &view)
	if view.Position == nil || view.Position.Lng != -46.6313 || view.ETA == nil || view.ETA.Before(view.Position.FixTime) {
		t.Errorf("%s", a.body)
	}
	if strings.Contains(string(a.body), courier.String()) || strings.Contains(string(a.body), "speed") {
		t.Errorf("the public sees %s", a.body)
	}
	view = api.Tracking{}
	if b.ask(t, "GET", "/v1/track/"+idle.TrackingToken, "").into(t, http.StatusOK, &view); view.Position != nil || view.ETA != nil {
		t.Errorf("another order shows %+v", view)
	}
	b.ended(t, m, o)
	view = api.Tracking{}
	if b.ask(t, "GET", "/v1/track/"+o.TrackingToken, "").into(t, http.StatusOK, &view); view.Position != nil || view.ETA != nil {
		t.Errorf("after it %+v", view)
	}
}

// The page must not go with the courier's dot.
func TestATrackingLinkWorksWherePositionsDoNot(t *testing.T) {
	t.Parallel()
	b := newTracked(t)
	m := b.merchant(t, "Padaria")
	o := m.create(t)
	if _, err := b.pool.Exec(t.Context(), `DROP TABLE tracking.positions CASCADE`); err != nil {
		t.Fatal(err)
	}
	var view api.Tracking
	b.ask(t, "GET", "/v1/track/"+o.TrackingToken, "").into(t, http.StatusOK, &view)
}
