package web

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/projection"
)

// figuresBed is the pages on the real API and a real database: what they show is
// computed from events, as it will be.
type figuresBed struct {
	t         *testing.T
	url       string
	pool      *pgxpool.Pool
	directory *tenants.Directory
	projector *analytics.Projector
	streams   *announcer
	now       time.Time
}

// plainly decodes what was written by the reader's own schema.
type plainly struct{}

func (plainly) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

func newFiguresBed(t *testing.T) *figuresBed {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.Migrated(t, tables.Migration(), tenants.Migration(), orders.Migration(), projection.Migration(), analytics.Migration()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := &figuresBed{
		t: t, pool: pool, directory: tenants.New(pool, tenants.Config{}), now: time.Now(), streams: &announcer{listeners: map[chan string]bool{}},
		projector: analytics.NewProjector(projection.NewLog(pool, projection.LogConfig{}), plainly{}),
	}
	model := analytics.New(pool)
	h, err := api.New(api.Deps{
		Orders:    orders.New(pool, outbox.New(contracts.All(), outbox.Config{}), orders.Config{}),
		Directory: b.directory, Counts: model, Analytics: model, Streams: b.streams, Pages: Register, Logger: slog.New(slog.DiscardHandler),
	}, api.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(b.streams.close)
	b.url = s.URL
	return b
}

// announcer is a stream of events that the test tells.
type announcer struct {
	mu        sync.Mutex
	listeners map[chan string]bool
	closed    bool
}

func (a *announcer) Serve(w http.ResponseWriter, r *http.Request, _ string) {
	told := make(chan string, 8)
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.listeners[told] = true
	a.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for text := "event: ready\ndata: {}\n\n"; text != ""; {
		_, _ = fmt.Fprint(w, text)
		_ = http.NewResponseController(w).Flush()
		select {
		case text = <-told:
		case <-r.Context().Done():
			text = ""
		}
	}
}

// tell has every listener hear of an order.
func (a *announcer) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.listeners {
		l <- `data: {"type":"logistica.orders.OrderCreated","subject":"x","data":{}}` + "\n\n"
	}
}

func (a *announcer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for l := range a.listeners {
		close(l)
	}
}

func (b *figuresBed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// merchant is a tenant and its key; an administrator's for no name.
func (b *figuresBed) merchant(name string) (id uuid.UUID, key string) {
	b.t.Helper()
	id, scope := tenants.Platform, tenants.Admin
	if name != "" {
		made, err := b.directory.Create(b.t.Context(), name)
		b.must(err)
		id, scope = made.ID, tenants.Merchant
	}
	key, _, err := b.directory.IssueKey(b.t.Context(), id, scope)
	b.must(err)
	return id, key
}

// happened is an event of a tenant.
func (b *figuresBed) happened(tenant uuid.UUID, at time.Time, data event.Data) projection.Event {
	b.t.Helper()
	c := data.EventContract()
	value, err := c.Schema.Encode(data)
	b.must(err)
	return projection.Event{Envelope: c.Envelope(event.WithTenant(b.t.Context(), tenant.String()), data, at), Value: value, Data: []byte(`{}`)}
}

func (b *figuresBed) write(es ...projection.Event) {
	b.t.Helper()
	b.must(pgx.BeginFunc(b.t.Context(), b.pool, func(tx pgx.Tx) error { return b.projector.Write(b.t.Context(), tx, es) }))
}

// order is the events of one order that is created at a moment.
func (b *figuresBed) order(tenant uuid.UUID, at time.Time, r *rand.Rand, promised bool) (es []projection.Event) {
	id, state, version := event.NewID(), contracts.OrderStateCreated, int64(1)
	c := contracts.OrderCreated{OrderID: id, Version: 1, Currency: "BRL"}
	if promised {
		p := at.Add(38 * time.Minute)
		c.PromisedAt = &p
	}
	add := func(at time.Time, d event.Data) {
		if at.Before(b.now) {
			es = append(es, b.happened(tenant, at, d))
		}
	}
	add(at, c)
	add(at.Add(time.Second), contracts.PlatformFeeBilled{OrderID: id, Version: 1, Amount: 290, Currency: "BRL", FeeID: id})
	walk := []contracts.OrderState{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED"}
	if r.IntN(12) == 0 {
		walk = []contracts.OrderState{"ASSIGNING", "CANCELLED"}
	}
	for _, to := range walk {
		at, version = at.Add(time.Duration(1+r.IntN(8))*time.Minute+time.Duration(r.IntN(40_000))*time.Millisecond), version+1
		add(at, contracts.OrderStatusChanged{OrderID: id, Version: version, From: state, To: to, Actor: "SYSTEM"})
		state = to
	}
	return es
}

// day fills the last day: lunch and dinner for each merchant, and couriers.
func (b *figuresBed) day(merchants ...uuid.UUID) {
	b.t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	var es []projection.Event
	for m, tenant := range merchants {
		for ago := 25 * time.Hour; ago > time.Minute; ago -= time.Duration(4+7*m+r.IntN(9)) * time.Minute {
			hour := b.now.Add(-ago).Hour()
			for range 1 + map[int]int{11: 2, 12: 3, 13: 2, 19: 2, 20: 3, 21: 2}[hour] {
				es = append(es, b.order(tenant, b.now.Add(-ago), r, true)...)
			}
		}
		for n := range 90 {
			es = append(es, b.order(tenant, b.now.Add(-time.Duration(n*40+r.IntN(60))*time.Second), r, n%3 > 0)...)
		}
		for d := 1; d < 20; d++ {
			for range 3 + r.IntN(30) {
				es = append(es, b.happened(tenant, b.now.AddDate(0, 0, -d), contracts.PlatformFeeBilled{OrderID: event.NewID(), Version: 1, Amount: 290, Currency: "BRL"}))
			}
		}
	}
	for range 12 {
		id, at, state := event.NewID(), b.now.Add(-22*time.Hour), contracts.CourierStateOffline
		for v, to := int64(1), contracts.CourierStateAvailable; at.Before(b.now); v++ {
			es = append(es, b.happened(tenants.Platform, at, contracts.CourierStatusChanged{CourierID: id, Version: v, From: state, To: to}))
			state, at = to, at.Add(time.Duration(5+r.IntN(50))*time.Minute)
			to = map[contracts.CourierState]contracts.CourierState{"AVAILABLE": "RESERVED", "RESERVED": "BUSY", "BUSY": "AVAILABLE"}[state]
		}
	}
	for len(es) > 0 {
		n := min(len(es), 1000)
		b.write(es[:n]...)
		es = es[n:]
	}
}
