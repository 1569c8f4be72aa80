package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/pg"
)

// fleet is a bed with couriers.
type fleet struct {
	*bed
	*couriers.Module
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetOn(t, database(t))
}

func newFleetOn(t *testing.T, pool *pgxpool.Pool, change ...func(*api.Deps, *api.Config)) *fleet {
	t.Helper()
	if err := pg.Migrate(t.Context(), pool, couriers.Migration()); err != nil {
		t.Fatal(err)
	}
	ob := outbox.New(contracts.All(), outbox.Config{})
	f := &fleet{Module: couriers.New(pool, ob, couriers.Config{})}
	engine := brokertest.New(t)
	tel, err := couriers.NewTelemetry(couriers.TelemetryDeps{DB: pool, Client: engine.Config.Client, Schemas: sevens{}},
		couriers.TelemetryConfig{Rate: 1, Logger: engine.Logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- tel.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	f.bed = newBedOn(t, pool, append([]func(*api.Deps, *api.Config){func(d *api.Deps, _ *api.Config) {
		d.Duty, d.Fleet, d.Telemetry, d.Reassigner = f.Module, f.Module, tel, f.Module
		d.Jobs = jobs{pool, orders.New(pool, ob, orders.Config{})}
	}}, change...)...)
	return f
}

type sevens struct{}

func (sevens) RegisterText(context.Context, string, string) (int, error) { return 7, nil }

// jobs is the orders that a courier is confirmed for, by the couriers' own
// tables.
type jobs struct {
	pool  *pgxpool.Pool
	store *orders.Store
}

func (j jobs) of(ctx context.Context, courier uuid.UUID) (tenant, order uuid.UUID, err error) {
	err = pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('waybill.courier', $1, true)`, courier.String()); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT tenant, order_id FROM couriers.reservations WHERE courier = $1 AND state = 'CONFIRMED'`, courier).
			Scan(&tenant, &order)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = orders.ErrNotFound
	}
	return tenant, order, err
}

func (j jobs) Jobs(ctx context.Context, courier uuid.UUID) ([]orders.Job, error) {
	tenant, order, err := j.of(ctx, courier)
	if errors.Is(err, orders.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := j.store.Get(ctx, tenant, order)
	return []orders.Job{{Order: o.ID, State: o.State, Version: o.Version, Attempt: 1, Pickup: o.Pickup, Dropoff: o.Dropoff, Customer: o.Customer}}, err
}

func (j jobs) MoveAsCourier(ctx context.Context, courier, order uuid.UUID, m orders.Move, _ string) (orders.Order, error) {
	tenant, theirs, err := j.of(ctx, courier)
	if err == nil && theirs != order {
		err = orders.ErrNotFound
	}
	if err != nil {
		return orders.Order{}, err
	}
	return j.store.Transition(ctx, tenant, order, m)
}

// rider is a courier with their key.
type rider struct {
	*fleet
	id  uuid.UUID
	key string
}

func (f *fleet) rider(t *testing.T, of ...merchant) rider {
	t.Helper()
	e := couriers.Enrolment{ID: event.NewID(), Name: "Rui Alves", Phone: "+55 11 90000-0000", Vehicle: "MOTORBIKE"}
	for _, m := range of {
		e.Tenants = append(e.Tenants, m.id)
	}
	key, err := f.Enroll(t.Context(), f.directory, e)
	if err != nil {
		t.Fatal(err)
	}
	return rider{f, e.ID, key}
}

func (r rider) ask(t *testing.T, method, path, body string) answer {
	t.Helper()
	return r.bed.ask(t, method, path, body, "Authorization", "Bearer "+r.key)
}

func (r rider) self(t *testing.T, method, path, body string) (c api.CourierSelf) {
	t.Helper()
	r.ask(t, method, path, body).into(t, http.StatusOK, &c)
	return c
}

// give runs an event through couriers, as its consumer would.
func give[E event.Data](t *testing.T, m merchant, data E, h func(context.Context, pgx.Tx, event.Of[E]) error) {
	t.Helper()
	ctx := event.WithTenant(t.Context(), m.id.String())
	e := event.Of[E]{Envelope: event.Envelope{Tenant: m.id.String()}, Data: data}
	if err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error { return h(ctx, tx, e) }); err != nil {
		t.Fatal(err)
	}
}

// assigned is an order that the rider has.
func (r rider) assigned(t *testing.T, m merchant) api.Order {
	t.Helper()
	r.self(t, "POST", "/v1/courier/status", `{"state":"AVAILABLE"}`)
	o := m.create(t)
	give(t, m, contracts.OrderCreated{OrderID: o.ID, Version: 1}, r.OrderCreated)
	o = m.move(t, o, "ASSIGNING", "ASSIGNED")
	give(t, m, contracts.OrderAssigned{OrderID: o.ID, Version: 3, CourierID: r.id, Attempt: 1}, r.OrderAssigned)
	return o
}

type jobList struct {
	Jobs []api.Job `json:"jobs"`
}

func (r rider) jobs(t *testing.T) (list jobList) {
	t.Helper()
	r.ask(t, "GET", "/v1/courier/jobs", "").into(t, http.StatusOK, &list)
	return list
}

func TestACourierChoosesTheirDutyUntilAnOrderIsTheirs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	shop := f.merchant(t, "Padaria")
	rui := f.rider(t, shop)
	want := api.CourierSelf{ID: rui.id, Name: "Rui Alves", Vehicle: "MOTORBIKE", State: "OFFLINE"}
	if c := rui.self(t, "GET", "/v1/courier", ""); fmt.Sprint(c.Allowed) != "[AVAILABLE]" || c.ID != want.ID || c.State != want.State || c.Version != 0 {
		t.Errorf("%+v", c)
	}
	p := rui.ask(t, "POST", "/v1/courier/status", `{"state":"PAUSED"}`).problem(t, http.StatusConflict)
	if p.From != "OFFLINE" || fmt.Sprint(p.Allowed) != "[AVAILABLE]" {
		t.Errorf("%+v", p)
	}
	rui.ask(t, "POST", "/v1/courier/status", `{"state":"AVAILABLE","expected_version":3}`).problem(t, http.StatusConflict)
	rui.ask(t, "POST", "/v1/courier/status", `{"state":"BUSY"}`).problem(t, http.StatusUnprocessableEntity)
	rui.assigned(t, shop)
	a := rui.ask(t, "POST", "/v1/courier/status", `{"state":"PAUSED"}`)
	if p := a.problem(t, http.StatusConflict); p.From != "BUSY" || !strings.Contains(string(a.body), `"allowed":[]`) || !strings.Contains(p.Detail, "when it has ended") {
		t.Errorf("%s", a.body)
	}
}

func TestACourierTakesAnOrderToItsCustomer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	shop := f.merchant(t, "Padaria")
	rui := f.rider(t, shop)
	o := rui.assigned(t, shop)
	list := rui.jobs(t)
	if len(list.Jobs) != 1 || list.Jobs[0].ID != o.ID || list.Jobs[0].Dropoff.Street != "Avenida Paulista" || list.Jobs[0].Customer.Name == "" {
		t.Fatalf("%+v", list)
	}
	var moved struct {
		ID      uuid.UUID `json:"id"`
		State   string    `json:"state"`
		Version int64     `json:"version"`
	}
	at := "/v1/courier/jobs/" + o.ID.String()
	rui.ask(t, "POST", at+"/accept", "").into(t, http.StatusOK, &moved)
	if moved.State != "PICKUP_ONGOING" || moved.ID != o.ID {
		t.Errorf("%+v", moved)
	}
	rui.ask(t, "POST", at+"/accept", "").problem(t, http.StatusConflict)
	for _, to := range []string{"ARRIVED_AT_MERCHANT", "PICKED_UP"} {
		rui.ask(t, "POST", at+"/moves", `{"to":"`+to+`"}`).into(t, http.StatusOK, &moved)
	}
	// Couriers have not heard of the pickup: orders has.
	if p := rui.ask(t, "POST", at+"/decline", "").problem(t, http.StatusConflict); !strings.Contains(p.Detail, "picked up") {
		t.Errorf("%+v", p)
	}
}

func TestACourierGivesAnOrderBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	shop := f.merchant(t, "Padaria")
	rui := f.rider(t, shop)
	o := rui.assigned(t, shop)
	at := "/v1/courier/jobs/" + o.ID.String()
	for range 2 { // the order goes when it has heard of it
		if a := rui.ask(t, "POST", at+"/decline", `{"reason":"flat tyre"}`); a.status != http.StatusNoContent || len(a.body) != 0 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	attempt, reason := int32(2), "DECLINED"
	give(t, shop, contracts.OrderStatusChanged{
		OrderID: o.ID, Version: 4, From: "ASSIGNED", To: "CREATED", Actor: "SYSTEM", Attempt: &attempt, Reason: &reason,
	}, rui.OrderStatusChanged)
	rui.ask(t, "POST", at+"/decline", "").problem(t, http.StatusNotFound)
	if c := rui.self(t, "GET", "/v1/courier", ""); c.State != "AVAILABLE" {
		t.Errorf("%+v", c)
	}
}

func TestACouriersKeyOpensTheirOwnJobsOnly(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	shop := f.merchant(t, "Padaria")
	rui := f.rider(t, shop)
	o := rui.assigned(t, shop)
	ana := f.rider(t, shop)
	if list := ana.jobs(t); len(list.Jobs) != 0 {
		t.Errorf("%+v", list)
	}
	at := "/v1/courier/jobs/" + o.ID.String()
	for _, call := range []string{"/accept", "/decline"} {
		ana.ask(t, "POST", at+call, "").problem(t, http.StatusNotFound)
	}
	ana.ask(t, "POST", at+"/moves", `{"to":"PICKUP_ONGOING"}`).problem(t, http.StatusNotFound)
	ana.ask(t, "POST", "/v1/courier/jobs/x/accept", "").problem(t, http.StatusNotFound)
	for _, r := range []rider{rui, ana} {
		if a := r.ask(t, "GET", "/v1/courier/events", ""); string(a.body) != "data: courier/"+r.id.String()+"\n\n" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

var couriersRoutes = []struct{ method, path string }{
	{"GET", "/v1/courier"},
	{"POST", "/v1/courier/status"},
	{"GET", "/v1/courier/jobs"},
	{"POST", "/v1/courier/jobs/ID/accept"},
	{"POST", "/v1/courier/jobs/ID/moves"},
	{"POST", "/v1/courier/jobs/ID/decline"},
	{"POST", "/v1/courier/positions"},
	{"GET", "/v1/courier/events"},
}

func TestEachKeyOpensTheRoutesOfItsScope(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	shop := f.merchant(t, "Padaria")
	rui := f.rider(t, shop)
	for _, c := range couriersRoutes {
		if p := shop.ask(t, c.method, c.path, "").problem(t, http.StatusForbidden); !strings.Contains(p.Detail, "scope courier; yours is of scope merchant") {
			t.Errorf("%s: %s", c.path, p.Detail)
		}
		f.bed.ask(t, c.method, c.path, "").problem(t, http.StatusUnauthorized)
	}
	if p := rui.ask(t, "GET", "/v1/couriers", "").problem(t, http.StatusForbidden); !strings.Contains(p.Detail, "scope merchant; yours is of scope courier") {
		t.Errorf("%s", p.Detail)
	}
}

func TestAMerchantsCouriersAreTheLinkedOnes(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	ours, theirs := f.merchant(t, "Padaria"), f.merchant(t, "Pizzaria")
	rui := f.rider(t, ours)
	f.rider(t, theirs)
	var got struct {
		Couriers []api.LinkedCourier `json:"couriers"`
	}
	a := ours.ask(t, "GET", "/v1/couriers", "")
	a.into(t, http.StatusOK, &got)
	if len(got.Couriers) != 1 || got.Couriers[0] != (api.LinkedCourier{ID: rui.id, Name: "Rui Alves", Vehicle: "MOTORBIKE", State: "OFFLINE"}) || strings.Contains(string(a.body), "90000") {
		t.Errorf("%s", a.body)
	}
}

func TestPositionsAreCountedAndPaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	rui := f.rider(t, f.merchant(t, "Padaria"))
	body := func(n int) string {
		one := fmt.Sprintf(`{"seq":1,"lat":-23.55,"lng":-46.63,"heading_deg":90,"fix_time":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
		return `{"positions":[` + strings.Repeat(one+",", n-1) + one + `]}`
	}
	var got struct {
		Accepted int `json:"accepted"`
	}
	a := rui.ask(t, "POST", "/v1/courier/positions", body(2))
	for deadline := time.Now().Add(time.Minute); a.status == http.StatusServiceUnavailable && time.Now().Before(deadline); {
		a = rui.ask(t, "POST", "/v1/courier/positions", body(2)) // the schema's id is being asked for
	}
	a.into(t, http.StatusAccepted, &got)
	if got.Accepted != 2 {
		t.Errorf("%+v", got)
	}
	p := rui.ask(t, "POST", "/v1/courier/positions", strings.Replace(body(1), "-23.55", "-123", 1)).problem(t, http.StatusUnprocessableEntity)
	if len(p.Errors) != 1 || p.Errors[0].Location != "body.positions[0].lat" {
		t.Errorf("%+v", p)
	}
	rui.ask(t, "POST", "/v1/courier/positions", body(101)).problem(t, http.StatusUnprocessableEntity)
	for n := 0; ; n++ {
		a := rui.ask(t, "POST", "/v1/courier/positions", body(100))
		if a.status == http.StatusTooManyRequests {
			if s, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || s < 1 || s > 100 {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
			break
		}
		a.into(t, http.StatusAccepted, &got)
		if n > 1000 {
			t.Fatal("never refused")
		}
	}
}
