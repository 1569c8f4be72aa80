package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tenants"
)

type ordersAnalysed struct {
	KeyScope string `json:"key_scope"`
	Now      time.Time
	Minutes  []api.OrderMinute
	ByState  map[string]int64 `json:"by_state"`
	Hours    []api.OrderHour
}

func (o ordersAnalysed) created() (n int64) {
	for _, m := range o.Minutes {
		n += m.Created
	}
	return n
}

type deliveriesAnalysed struct {
	Total api.DeliveryFigures
	Hours []api.DeliveryHour
}

// delivers has the read models hear of an order from its creation to its
// delivery, a quarter of an hour later and as late as that says.
func (m merchant) delivers(t *testing.T, late bool) {
	t.Helper()
	order, created := event.NewID(), time.Now().Add(-16*time.Minute)
	promised := created.Add(20 * time.Minute)
	if late {
		promised = created.Add(10 * time.Minute)
	}
	m.hear(t, m.id, created, contracts.OrderCreated{OrderID: order, Version: 1, Currency: "BRL", PromisedAt: &promised})
	m.hear(t, m.id, created, contracts.PlatformFeeBilled{OrderID: order, Version: 1, Amount: 250, Currency: "BRL"})
	at := contracts.OrderStateCreated
	for i, to := range []contracts.OrderState{"ASSIGNING", "ASSIGNED", "PICKED_UP", "DELIVERED"} {
		after := []time.Duration{time.Minute, 2 * time.Minute, 7 * time.Minute, 15 * time.Minute}[i]
		m.hear(t, m.id, created.Add(after), contracts.OrderStatusChanged{OrderID: order, Version: int64(i) + 2, From: at, To: to, Actor: "COURIER"})
		at = to
	}
}

func TestAMerchantReadsItsOwnFiguresAndAnAdministratorAll(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs, admin := b.merchant(t, "Padaria"), b.merchant(t, "Cantina"), b.admin(t)
	for i := range 4 {
		ours.delivers(t, i == 0)
	}
	theirs.delivers(t, true)

	read := func(m merchant, query string) (o ordersAnalysed, d deliveriesAnalysed) {
		t.Helper()
		m.ask(t, "GET", "/v1/analytics/orders"+query, "").into(t, http.StatusOK, &o)
		m.ask(t, "GET", "/v1/analytics/deliveries"+query, "").into(t, http.StatusOK, &d)
		return o, d
	}
	for _, c := range []struct {
		who         merchant
		query       string
		orders      int64
		late, share float64
	}{
		{ours, "", 4, 1, 0.25},
		{theirs, "", 1, 1, 1},
		{admin, "", 5, 2, 0.4},
		{admin, "?tenant=" + ours.id.String(), 4, 1, 0.25},
		{ours, "?tenant=" + ours.id.String(), 4, 1, 0.25},
	} {
		o, d := read(c.who, c.query)
		if len(o.Minutes) != 60 || o.created() != c.orders || o.ByState["DELIVERED"] != c.orders || len(o.ByState) != 1 || len(o.Hours) != 24 {
			t.Errorf("%s: orders %+v", c.query, o)
		}
		if d.Total.Delivered != c.orders || float64(d.Total.Late) != c.late || d.Total.LateShare == nil || *d.Total.LateShare != c.share || len(d.Hours) != 24 {
			t.Errorf("%s: deliveries %+v", c.query, d.Total)
		}
		const minute = int64(60_000)
		if *d.Total.P50 != 15*minute || *d.Total.P95 != 15*minute || *d.Total.ToAssign != 2*minute || *d.Total.ToPickUp != 5*minute || *d.Total.ToCustomer != 8*minute {
			t.Errorf("%s: durations %+v", c.query, d.Total)
		}
		want := "merchant"
		if c.who.id == tenants.Platform {
			want = "admin"
		}
		if o.KeyScope != want {
			t.Errorf("a key of scope %s", o.KeyScope)
		}
	}
	var rows struct{ Tenants []api.TenantFigures }
	admin.ask(t, "GET", "/v1/analytics/tenants", "").into(t, http.StatusOK, &rows)
	if len(rows.Tenants) != 2 || rows.Tenants[0].Name != "Padaria" || rows.Tenants[0].Created != 4 || rows.Tenants[1].Delivered != 1 {
		t.Errorf("by merchant: %+v", rows)
	}
	var fees struct{ Days []api.FeeDay }
	ours.ask(t, "GET", "/v1/analytics/fees?days=2", "").into(t, http.StatusOK, &fees)
	if sum := fees.Days[0].Billed; len(fees.Days) == 1 && (sum != 1000 || fees.Days[0].Fees != 4 || fees.Days[0].Currency != "BRL" || fees.Days[0].Net != 1000) {
		t.Errorf("fees: %+v", fees)
	}
}

func TestWhatIsAnothersOrNobodysAnswersAlikeInFigures(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs, admin := b.merchant(t, "Padaria"), b.merchant(t, "Cantina"), b.admin(t)
	for _, path := range []string{"orders", "deliveries", "fees"} {
		path = "/v1/analytics/" + path + "?tenant="
		there, none := ours.ask(t, "GET", path+theirs.id.String(), ""), ours.ask(t, "GET", path+uuid.NewString(), "")
		if there.status != http.StatusNotFound || there.shape() != none.shape() {
			t.Errorf("%s: %d %s, and of nobody %d %s", path, there.status, there.body, none.status, none.body)
		}
		if a := admin.ask(t, "GET", path+uuid.NewString(), ""); a.status != http.StatusNotFound {
			t.Errorf("%s of nobody answers an administrator %d", path, a.status)
		}
	}
	for _, path := range []string{"couriers", "tenants"} {
		if a := ours.ask(t, "GET", "/v1/analytics/"+path, ""); a.status != http.StatusForbidden {
			t.Errorf("%s answers a merchant %d", path, a.status)
		}
	}
	for _, query := range []string{"orders?hours=0", "orders?hours=169", "deliveries?tenant=x", "fees?days=367", "orders?limit=3"} {
		if a := ours.ask(t, "GET", "/v1/analytics/"+query, ""); a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), "query.") {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

func TestCouriersHoursAddUpToTheirTime(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	admin, courier, begun := b.admin(t), event.NewID(), time.Now().Add(-90*time.Minute)
	for i, to := range []contracts.CourierState{"AVAILABLE", "RESERVED", "BUSY"} {
		b.hear(t, tenants.Platform, begun.Add(time.Duration(i)*20*time.Minute), contracts.CourierStatusChanged{
			CourierID: courier, Version: int64(i) + 1, From: "OFFLINE", To: to,
		})
	}
	var got struct{ Hours []api.CourierHour }
	admin.ask(t, "GET", "/v1/analytics/couriers?hours=3", "").into(t, http.StatusOK, &got)
	var free, held, busy int64
	for _, h := range got.Hours {
		free, held, busy = free+h.Available, held+h.Reserved, busy+h.Busy
	}
	const minute = int64(60_000)
	// Busy since fifty minutes: it goes on while this is read.
	if len(got.Hours) != 3 || free/10 != 2*minute || held/10 != 2*minute || busy < 50*minute || busy > 55*minute {
		t.Errorf("available %d ms, reserved %d ms, busy %d ms: %+v", free, held, busy, got)
	}
}

// away is ClickHouse while nobody answers.
type away struct{ api.Analytics }

func (away) Delivered(context.Context, analytics.Scope, time.Time, time.Time) (analytics.Deliveries, []analytics.DeliveryHour, error) {
	return analytics.Deliveries{}, nil, fmt.Errorf("read deliveries: %w: connection refused to 10.0.0.7", analytics.ErrUnavailable)
}

func TestFiguresThatCannotBeReadSayToComeBackAndNoMore(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(d *api.Deps, _ *api.Config) { d.Analytics = away{d.Analytics} })
	a := b.merchant(t, "Padaria").ask(t, "GET", "/v1/analytics/deliveries", "")
	if a.status != http.StatusServiceUnavailable || strings.Contains(string(a.body), "10.0.0.7") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
