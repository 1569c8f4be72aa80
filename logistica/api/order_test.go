package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/api"
)

func TestAnOrderLivesFromPostToDelivery(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	for _, path := range []string{"/v1/orders", "/orders"} {
		a := m.ask(t, "POST", path, orderBody, "Content-Type", "application/json; charset=utf-8")
		var o, read api.Order
		a.into(t, http.StatusCreated, &o)
		if loc := a.header.Get("Location"); loc != "/v1/orders/"+o.ID.String() {
			t.Errorf("Location %q", loc)
		}
		m.ask(t, "GET", a.header.Get("Location"), "").into(t, http.StatusOK, &read)
		if fmt.Sprintf("%+v", o) != fmt.Sprintf("%+v", read) {
			t.Errorf("created %+v\nread    %+v", o, read)
		}
		if o.Total != 6*315+2*950 || o.Currency != "BRL" || o.Customer.Name != "Ana Beatriz Moura" || o.TrackingURL != "/track/"+o.TrackingToken {
			t.Errorf("%+v", o)
		}
		o = m.move(t, o, "ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED")
		if o.State != "DELIVERED" || o.Version != 10 || o.Allowed == nil || len(o.Allowed) != 0 {
			t.Errorf("%+v", o)
		}
	}
}

func TestCustomerMayStayUnnamed(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	m.ask(t, "POST", "/v1/orders", with(`"customer": {"name":"Ana Beatriz Moura","phone":"(11) 91234-5678"},`, "")).into(t, http.StatusCreated, &api.Order{})
}

func TestRepeatedRequestGetsTheSameBytes(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	first := m.ask(t, "POST", "/v1/orders", orderBody, "Idempotency-Key", "k")
	var o api.Order
	first.into(t, http.StatusCreated, &o)
	m.move(t, o, "ASSIGNING")
	spaced := strings.ReplaceAll(orderBody, ":", " : ")
	for _, path := range []string{"/v1/orders", "/orders"} {
		again := m.ask(t, "POST", path, strings.Replace(spaced, `01310-200`, `01310200`, 1), "Idempotency-Key", "k")
		if again.status != http.StatusCreated || again.header.Get("Idempotency-Replayed") != "true" || !bytes.Equal(first.body, again.body) ||
			first.header.Get("Location") != again.header.Get("Location") {
			t.Errorf("%d %v\n%s\n%s", again.status, again.header, first.body, again.body)
		}
	}
	if first.header.Get("Idempotency-Replayed") != "" {
		t.Error("the first says it was repeated")
	}
	p := m.ask(t, "POST", "/v1/orders", with(`"quantity":6`, `"quantity":7`), "Idempotency-Key", "k").problem(t, http.StatusUnprocessableEntity)
	if p.Type != "/docs#idempotency-key-reused" {
		t.Errorf("%+v", p)
	}
}

func TestFiftyRacingRequestsWithOneKeyMakeOneOrder(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	answers := make([]answer, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = m.ask(t, "POST", "/v1/orders", orderBody, "Idempotency-Key", "race") })
	}
	all.Wait()
	fresh := 0
	for _, a := range answers {
		if a.status != http.StatusCreated || !bytes.Equal(a.body, answers[0].body) {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if a.header.Get("Idempotency-Replayed") == "" {
			fresh++
		}
	}
	var list struct{ Orders []api.Order }
	m.ask(t, "GET", "/v1/orders", "").into(t, http.StatusOK, &list)
	var events int
	if err := m.pool.QueryRow(t.Context(), `SELECT count(*) FROM waybill.outbox_events`).Scan(&events); err != nil {
		t.Fatal(err)
	}
	if fresh != 1 || len(list.Orders) != 1 || events != 1 {
		t.Errorf("%d fresh answers, %d orders, %d events", fresh, len(list.Orders), events)
	}
}

func TestPagesJoinWithoutSeam(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	var made []string
	for range 7 {
		made = append([]string{m.create(t).ID.String()}, made...)
	}
	var seen []string
	for path := "/v1/orders?limit=3&state=CREATED"; path != ""; {
		var page struct {
			Orders []api.Order
			Next   string `json:"next_cursor"`
		}
		m.ask(t, "GET", path, "").into(t, http.StatusOK, &page)
		for _, o := range page.Orders {
			seen = append(seen, o.ID.String())
		}
		path = ""
		if page.Next != "" {
			path = "/v1/orders?limit=3&state=CREATED&cursor=" + page.Next
		}
	}
	if fmt.Sprint(seen) != fmt.Sprint(made) {
		t.Errorf("seen %v\nmade %v", seen, made)
	}
}

func TestARequestBeginsTheChainOfItsEvents(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	parent := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for given, taken := range map[string]string{"checkout:42": "checkout:42", "": "", "has space": "", strings.Repeat("x", 129): ""} {
		a := m.ask(t, "POST", "/v1/orders", orderBody, "X-Request-Id", given, "Traceparent", parent)
		var o api.Order
		a.into(t, http.StatusCreated, &o)
		id := a.header.Get("X-Request-Id")
		if id == "" || taken != "" && id != taken || taken == "" && id == given {
			t.Errorf("%.20q became %q", given, id)
		}
		rows, err := m.pool.Query(t.Context(), `SELECT correlation_id, causation_id, trace_parent, tenant FROM waybill.outbox_events WHERE subject = $1`, o.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct{ Correlation, Causation, Parent, Tenant string }])
		if err != nil || got.Correlation != id || got.Causation != id || got.Parent != parent || got.Tenant != m.id.String() {
			t.Errorf("event says %+v, %v", got, err)
		}
	}
}

func TestMeNamesTheMerchant(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria São João")
	var me struct{ ID, Name string }
	m.ask(t, "GET", "/v1/me", "").into(t, http.StatusOK, &me)
	if me.ID != m.id.String() || me.Name != "Padaria São João" {
		t.Errorf("%+v", me)
	}
}
