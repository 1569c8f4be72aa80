package analytics_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/projection"
)

// begin is an hour before midnight in São Paulo: a day ends within a story.
var begin = analytics.DayOf(time.Now().AddDate(0, 0, -2)).Add(2 * time.Hour)

const storyHours = 6

// story draws what happened: orders of three merchants, their fees, and couriers.
// Facts of a key are in order; others come as they are told below.
func story(r *rapid.T, t *testing.T) (all []fact) {
	merchants := []uuid.UUID{event.NewID(), event.NewID(), event.NewID()}
	clock := func(at time.Time) time.Time {
		return at.Add(time.Duration(rapid.IntRange(0, 20*60_000_000).Draw(r, "µs")) * time.Microsecond)
	}
	add := func(tenant uuid.UUID, at time.Time, d event.Data) {
		all = append(all, fact{tenant, at, d, said(t, tenant, at, d)})
	}
	for range rapid.IntRange(1, 25).Draw(r, "orders") {
		tenant, order := rapid.SampledFrom(merchants).Draw(r, "merchant"), event.NewID()
		at, version, state := clock(begin.Add(time.Duration(rapid.IntRange(0, 180).Draw(r, "min"))*time.Minute)), int64(1), contracts.OrderStateCreated
		c := contracts.OrderCreated{OrderID: order, Version: 1, Currency: "BRL"}
		if rapid.Bool().Draw(r, "promised") {
			p := at.Add(time.Duration(rapid.IntRange(1, 90).Draw(r, "promise")) * time.Minute)
			c.PromisedAt = &p
		}
		add(tenant, at, c)
		go1 := func(to contracts.OrderState) {
			at, version = clock(at), version+1
			add(tenant, at, moved(order, version, state, to))
			state = to
		}
		for attempt := int32(1); ; attempt++ {
			go1("ASSIGNING")
			fee := contracts.PlatformFeeBilled{OrderID: order, Version: int64(attempt)*2 - 1, Attempt: attempt, FeeID: event.NewID(), Amount: rapid.Int64Range(1, 900).Draw(r, "fee"), Currency: "BRL"}
			add(tenant, at, fee)
			go1("ASSIGNED")
			version++
			add(tenant, at, contracts.OrderAssigned{OrderID: order, Version: version, Attempt: attempt, FeeID: fee.FeeID})
			if attempt > 2 || rapid.IntRange(0, 3).Draw(r, "declines") > 0 {
				break
			}
			go1("CREATED")
			add(tenant, at, contracts.PlatformFeeVoided{OrderID: order, Version: fee.Version + 1, Attempt: attempt, FeeID: fee.FeeID, Amount: fee.Amount, Currency: "BRL", Reason: "declined"})
		}
		for _, to := range []contracts.OrderState{"PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED"} {
			if rapid.IntRange(0, 12).Draw(r, "ends") == 0 {
				if to == "PICKUP_ONGOING" {
					go1("CANCELLED")
				}
				break
			}
			go1(to)
		}
	}
	for range rapid.IntRange(0, 4).Draw(r, "couriers") {
		courier, at, state := event.NewID(), clock(begin), contracts.CourierStateOffline
		for v := range int64(rapid.IntRange(1, 12).Draw(r, "changes")) {
			to := rapid.SampledFrom([]contracts.CourierState{"AVAILABLE", "RESERVED", "BUSY", "PAUSED", "OFFLINE"}).Draw(r, "duty")
			add(platform, at, duty(courier, v+1, state, to))
			at, state = clock(at), to
		}
	}
	return all
}

// tell gives the facts to the projector: topic and partition by themselves, in
// batches of any size, of which some are given again, whole or in part, and some
// fail after they were written.
func tell(r *rapid.T, b *bed, all []fact) {
	type lane struct {
		topic     string
		partition int32
	}
	queues := map[lane][]projection.Event{}
	var lanes []lane
	for _, f := range all {
		l := lane{f.event.Topic, f.event.Partition}
		if queues[l] == nil {
			lanes = append(lanes, l)
		}
		queues[l] = append(queues[l], f.event)
	}
	done := map[lane]int{}
	for len(lanes) > 0 {
		i := rapid.IntRange(0, len(lanes)-1).Draw(r, "lane")
		l := lanes[i]
		q, at := queues[l], done[l]
		n := rapid.IntRange(1, min(len(q)-at, 40)).Draw(r, "batch")
		back := 0
		if at > 0 {
			back = rapid.IntRange(0, min(at, 5)).Draw(r, "again")
		}
		crash := rapid.IntRange(0, 5).Draw(r, "crash") == 0
		if err := b.write(context.Background(), crash, q[at-back:at+n]...); err != nil {
			r.Fatal(err)
		}
		if crash {
			continue
		}
		if done[l] += n; done[l] == len(q) {
			lanes = append(lanes[:i], lanes[i+1:]...)
		}
	}
}

func TestTheTablesAreWhatTheEventsSayInWhateverBatchesTheyCome(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	rapid.Check(t, func(r *rapid.T) {
		if err := analytics.Clear(context.Background(), b.pool); err != nil {
			r.Fatal(err)
		}
		all := story(r, t)
		tell(r, b, all)
		compare(r, b.Model, all)
	})
}

// reader is what reads the figures, whatever keeps them.
type reader interface {
	Minutes(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.Minute, error)
	StateHours(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.StateHour, error)
	States(ctx context.Context, s analytics.Scope) (map[string]int64, error)
	Delivered(ctx context.Context, s analytics.Scope, from, to time.Time) (analytics.Deliveries, []analytics.DeliveryHour, error)
	FeeDays(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.FeeDay, error)
	CourierHours(ctx context.Context, from, to, now time.Time) ([]analytics.CourierHour, error)
	Tenants(ctx context.Context, from, to time.Time, limit int) ([]analytics.TenantDeliveries, error)
}

type failing interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// compare reads every figure and compares it with the model's: of each merchant
// and of all, in windows that begin and end at full hours.
func compare(r failing, m reader, all []fact) {
	r.Helper()
	ctx, from := context.Background(), begin.Add(time.Hour)
	to, now := begin.Add((storyHours+6)*time.Hour), begin.Add(4*time.Hour+17*time.Minute)
	must := func(err error) {
		r.Helper()
		if err != nil {
			r.Fatal(err)
		}
	}
	equal := func(what string, got, want any) {
		r.Helper()
		if !reflect.DeepEqual(got, want) {
			r.Errorf("%s: %s, the events say %s", what, show(got), show(want))
		}
	}
	seen := map[uuid.UUID]bool{}
	for _, f := range all {
		if f.tenant != platform {
			seen[f.tenant] = true
		}
	}
	scopes := map[string]*uuid.UUID{"all": nil}
	for id := range seen {
		scopes[id.String()] = &id
	}
	for name, tenant := range scopes {
		s, mine := analytics.All(), of(all, tenant)
		if tenant != nil {
			s = analytics.Of(*tenant)
		}
		states, err := m.States(ctx, s)
		must(err)
		equal(name+" states", states, modelStates(mine))

		minutes, err := m.Minutes(ctx, s, from, to)
		must(err)
		want := []analytics.Minute{}
		for at := from; at.Before(to); at = at.Add(time.Minute) {
			if n := modelCreated(mine, at); n > 0 {
				want = append(want, analytics.Minute{At: at, Created: n})
			}
		}
		equal(name+" minutes", append([]analytics.Minute{}, minutes...), want)

		hours, err := m.StateHours(ctx, s, from, to)
		must(err)
		entered := int64(0)
		for _, h := range hours {
			entered += h.Entered
			equal(fmt.Sprint(name, h.State, h.Hour), h.Entered, modelEntered(mine, h.Hour, h.State))
		}
		sum := int64(0)
		for at := from; at.Before(to); at = at.Add(time.Hour) {
			for _, state := range contracts.OrderState("").Values() {
				sum += modelEntered(mine, at, string(state))
			}
		}
		equal(name+" entered", entered, sum)

		whole, byHour, err := m.Delivered(ctx, s, from, to)
		must(err)
		equal(name+" deliveries", whole, modelDelivered(mine, from, to))
		inHours := int64(0)
		for _, h := range byHour {
			inHours += h.Delivered
			equal(name+" hour", h.Deliveries, modelDelivered(mine, h.Hour, h.Hour.Add(time.Hour)))
		}
		equal(name+" deliveries of hours", inHours, whole.Delivered)

		days, err := m.FeeDays(ctx, s, analytics.DayOf(begin), analytics.DayOf(to))
		must(err)
		fees := modelFees(mine)
		equal(name+" days", len(days), len(fees))
		for _, d := range days {
			equal(name+" fees", d, fees[d.Day])
		}
	}
	compareCouriers(r, m, all, from, to, now)
	rows, err := m.Tenants(ctx, from, to, 10)
	must(err)
	for _, row := range rows {
		mine := of(all, &row.Tenant)
		equal("tenant", row.Deliveries, modelDelivered(mine, from, to))
		made := int64(0)
		for at := from; at.Before(to); at = at.Add(time.Hour) {
			made += modelEntered(mine, at, "CREATED")
		}
		equal("created of tenant", row.Created, made)
	}
}

func compareCouriers(r failing, m reader, all []fact, from, to, now time.Time) {
	r.Helper()
	hours, err := m.CourierHours(context.Background(), from, to, now)
	if err != nil {
		r.Fatal(err)
	}
	got := map[time.Time]analytics.CourierHour{}
	for _, h := range hours {
		got[h.Hour] = h
	}
	for at := from; at.Before(to); at = at.Add(time.Hour) {
		h := got[at]
		for state, d := range map[string]time.Duration{"AVAILABLE": h.Available, "RESERVED": h.Reserved, "BUSY": h.Busy, "PAUSED": h.Paused} {
			if want := modelSpent(all, at, state, now); d != want {
				r.Errorf("%s at %s: %s, the events say %s", state, at, d, want)
			}
		}
	}
}

func show(v any) string {
	if d, is := v.(analytics.Deliveries); is {
		p := func(n *int64) int64 {
			if n == nil {
				return -1
			}
			return *n
		}
		return fmt.Sprintf("{%d delivered, p50 %d p95 %d, %d %d %d, %d of %d late}", d.Delivered, p(d.P50), p(d.P95), p(d.ToAssign), p(d.ToPickUp), p(d.ToCustomer), d.Late, d.Promised)
	}
	return fmt.Sprintf("%+v", v)
}

func TestCountsOfTheDeskFollowTheEvents(t *testing.T) {
	t.Parallel()
	b, tenant, other := newBed(t), event.NewID(), event.NewID()
	require := func(of uuid.UUID, want map[string]int64) {
		t.Helper()
		if got, err := b.Counts(t.Context(), of); err != nil || !maps.Equal(got, want) {
			t.Errorf("counts %v, want %v (%v)", got, want, err)
		}
	}
	require(tenant, map[string]int64{})
	a, c := event.NewID(), event.NewID()
	now := time.Now()
	batch := []projection.Event{
		said(t, tenant, now, contracts.OrderCreated{OrderID: a, Version: 1, Currency: "BRL"}),
		said(t, tenant, now, contracts.OrderCreated{OrderID: c, Version: 1, Currency: "BRL"}),
		said(t, other, now, contracts.OrderCreated{OrderID: event.NewID(), Version: 1, Currency: "BRL"}), // tenants mixed
		said(t, tenant, now, moved(a, 2, "CREATED", "ASSIGNING")),
	}
	for range 3 { // and delivered three times
		if err := b.write(t.Context(), false, batch...); err != nil {
			t.Fatal(err)
		}
	}
	require(tenant, map[string]int64{"CREATED": 1, "ASSIGNING": 1})
	require(other, map[string]int64{"CREATED": 1})
}

func TestRowLevelSecurityHoldsBeneathEveryStatement(t *testing.T) {
	t.Parallel()
	b, ours, theirs := newBed(t), event.NewID(), event.NewID()
	now := time.Now()
	for _, tenant := range []uuid.UUID{ours, theirs} {
		order := event.NewID()
		err := b.write(t.Context(), false,
			said(t, tenant, now, contracts.OrderCreated{OrderID: order, Version: 1, Currency: "BRL"}),
			said(t, tenant, now, contracts.PlatformFeeBilled{OrderID: order, Version: 1, Amount: 100, Currency: "BRL"}))
		if err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string]int{
		"events": 2, "order_count": 1, "orders_by_state": 1, "orders_by_hour": 1, "orders_by_minute": 1, "deliveries": 1, "fees_by_day": 1,
	} {
		var mine, nobodys int
		count := func(n *int) func(pgx.Tx) error {
			return func(tx pgx.Tx) error {
				return tx.QueryRow(t.Context(), "SELECT count(*) FROM analytics."+table).Scan(n)
			}
		}
		if err := pg.InTenant(t.Context(), b.pool, ours.String(), count(&mine)); err != nil {
			t.Fatal(err)
		}
		if err := pgx.BeginFunc(t.Context(), b.pool, count(&nobodys)); err != nil {
			t.Fatal(err)
		}
		if mine != want || nobodys != 0 {
			t.Errorf("%s shows %d to its tenant, %d to nobody", table, mine, nobodys)
		}
	}
}

func TestAnEventOfNoTenantIsAnErrorAndCountsNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	e := said(t, event.NewID(), time.Now(), contracts.OrderCreated{OrderID: event.NewID(), Version: 1, Currency: "BRL"})
	e.Tenant = "nobody"
	if err := b.write(t.Context(), false, e); err == nil {
		t.Error("it was taken")
	}
	if states, err := b.States(t.Context(), analytics.All()); err != nil || len(states) != 0 {
		t.Errorf("%v, %v", states, err)
	}
}
