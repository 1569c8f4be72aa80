package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/tenants"
)

func TestAnotherTenantsOrderDoesNotExist(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	o := ours.create(t)
	ours.count(t, o)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/orders/ID", ""},
		{"POST", "/v1/orders/ID/transitions", `{"to":"CANCELLED"}`},
		{"POST", "/v1/orders/ID/transitions", `{"to":"DELIVERED"}`},
		{"POST", "/v1/orders/ID/transitions", `{"to":"CANCELLED","expected_version":9}`},
		{"POST", "/v1/orders/ID/reassign", ""},
		{"POST", "/v1/orders/ID/delivery-code/reset", ""},
	} {
		foreign := theirs.ask(t, c.method, strings.Replace(c.path, "ID", o.ID.String(), 1), c.body).problem(t, http.StatusNotFound)
		unknown := theirs.ask(t, c.method, strings.Replace(c.path, "ID", uuid.NewString(), 1), c.body).problem(t, http.StatusNotFound)
		foreign.RequestID, unknown.RequestID = "", ""
		if foreign.Detail != unknown.Detail || foreign.Type != unknown.Type || len(foreign.Allowed) != 0 {
			t.Errorf("%s %s tells them apart: %+v, %+v", c.method, c.path, foreign, unknown)
		}
	}
	var list struct{ Orders []api.Order }
	theirs.ask(t, "GET", "/v1/orders", "").into(t, http.StatusOK, &list)
	var counts struct{ Counts map[string]int64 }
	theirs.ask(t, "GET", "/v1/orders/counts", "").into(t, http.StatusOK, &counts)
	if len(list.Orders) != 0 || len(counts.Counts) != 0 {
		t.Errorf("they see %v, %v", list, counts)
	}
	ours.ask(t, "GET", "/v1/orders/counts", "").into(t, http.StatusOK, &counts)
	if counts.Counts["CREATED"] != 1 {
		t.Errorf("we count %v", counts)
	}
	var still api.Order
	ours.ask(t, "GET", "/v1/orders/"+o.ID.String(), "").into(t, http.StatusOK, &still)
	if still.State != "CREATED" || still.Version != 1 {
		t.Errorf("it moved: %+v", still)
	}
}

func TestACursorOfAnotherTenantShowsNothingOfTheirs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	for range 3 {
		ours.create(t)
	}
	var page struct {
		Orders []api.Order
		Next   string `json:"next_cursor"`
	}
	ours.ask(t, "GET", "/v1/orders?limit=1", "").into(t, http.StatusOK, &page)
	theirs.ask(t, "GET", "/v1/orders?cursor="+page.Next, "").into(t, http.StatusOK, &page)
	if len(page.Orders) != 0 {
		t.Errorf("they see %v", page.Orders)
	}
}

var locked = []struct{ method, path string }{
	{"POST", "/v1/orders"},
	{"POST", "/orders"},
	{"GET", "/v1/orders"},
	{"GET", "/v1/orders/counts"},
	{"GET", "/v1/orders/" + uuid.NewString()},
	{"POST", "/v1/orders/" + uuid.NewString() + "/transitions"},
	{"POST", "/v1/orders/" + uuid.NewString() + "/reassign"},
	{"POST", "/v1/orders/" + uuid.NewString() + "/delivery-code/reset"},
	{"GET", "/v1/reports/day.csv"},
	{"GET", "/v1/events"},
	{"GET", "/v1/me"},
}

func TestNothingOpensWithoutAKey(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m := b.merchant(t, "Padaria")
	for _, c := range locked {
		for name, header := range map[string]string{
			"none": "", "basic": "Basic " + m.key, "bare": m.key, "empty": "Bearer ", "spoiled": "Bearer " + m.key + "x",
			"random": "Bearer " + tenants.NewKey(m.id), "two": "Bearer " + m.key + " " + m.key,
		} {
			a := b.ask(t, c.method, c.path, orderBody, "Authorization", header)
			a.problem(t, http.StatusUnauthorized)
			if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s %s with %s: no challenge", c.method, c.path, name)
			}
		}
		a := b.ask(t, c.method, c.path+"?access_token="+m.key, orderBody)
		a.problem(t, http.StatusUnauthorized)
	}
}

func TestARevokedKeyOpensNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m := b.merchant(t, "Padaria")
	m.create(t)
	if err := b.directory.RevokeKey(t.Context(), m.id, m.keyID); err != nil {
		t.Fatal(err)
	}
	for _, c := range locked {
		m.ask(t, c.method, c.path, orderBody).problem(t, http.StatusUnauthorized)
	}
}

func TestACouriersKeyIsNoMerchants(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	key, _, err := m.directory.IssueCourierKey(t.Context(), event.NewID())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range locked {
		p := m.bed.ask(t, c.method, c.path, orderBody, "Authorization", "Bearer "+key).problem(t, http.StatusForbidden)
		if !strings.Contains(p.Detail, "scope merchant") {
			t.Errorf("%s: %s", c.path, p.Detail)
		}
	}
}

func TestStreamsAreOfTheirOwnTenantAndOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	o := ours.create(t)
	for _, m := range []merchant{ours, theirs} {
		// Whatever a client adds, the channel comes from its key.
		a := m.ask(t, "GET", "/v1/events?tenant="+ours.id.String(), "", "Last-Event-ID", "x")
		if a.status != http.StatusOK || string(a.body) != "data: tenant/"+m.id.String()+"\n\n" {
			t.Errorf("stream: %d %s", a.status, a.body)
		}
	}
	a := theirs.ask(t, "GET", "/track/"+o.TrackingToken+"/events", "")
	if a.status != http.StatusOK || string(a.body) != "data: order/"+o.ID.String()+"\n\n" {
		t.Errorf("public stream: %d %s", a.status, a.body)
	}
}

var moment = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[\d:.]+Z"`)

func TestATrackingLinkShowsThePublicPartAndNoMore(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	o := ours.move(t, ours.create(t), "ASSIGNING", "ASSIGNED")
	for name, a := range map[string]answer{
		"public": b.ask(t, "GET", "/v1/track/"+o.TrackingToken, ""),
		"theirs": theirs.ask(t, "GET", "/v1/track/"+o.TrackingToken, ""),
		"ours":   ours.ask(t, "GET", "/v1/track/"+o.TrackingToken, ""),
	} {
		var got api.Tracking
		a.into(t, http.StatusOK, &got)
		if got.State != "ASSIGNED" || got.Version != 3 || got.Merchant != "Padaria" || len(got.Items) != 2 || len(got.Timeline) != 3 || got.Timeline[2].State != "ASSIGNED" {
			t.Errorf("%s: %+v", name, got)
		}
		if got.DeliveryCode != o.DeliveryCode || o.DeliveryCode == "" {
			t.Errorf("%s: the customer sees the code %q of %q", name, got.DeliveryCode, o.DeliveryCode)
		}
		if about := (api.TrackedPlace{Lat: -23.556, Lng: -46.658}); got.Pickup != about || got.Dropoff.Lng != -46.656 {
			t.Errorf("%s: from %v to %v", name, got.Pickup, got.Dropoff)
		}
		shown := moment.ReplaceAllString(string(a.body), "") // of which any digits may be a part, as of the code
		shown = strings.Replace(shown, `"delivery_code":"`+o.DeliveryCode+`"`, "", 1)
		for _, secret := range []string{"Ana", "91234", "Paulista", "1578", "01310", "Portaria", "Augusta", "315", "total", "price", "-23.5563", "-46.6582", "-23.5615", o.ID.String(), ours.id.String(), o.TrackingToken} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s: shows %q: %s", name, secret, a.body)
			}
		}
	}
	theirs.ask(t, "GET", "/v1/orders/"+o.TrackingToken, "").problem(t, http.StatusNotFound)
}
