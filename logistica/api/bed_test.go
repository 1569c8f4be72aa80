package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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

// bed is the API on a real server and a real database.
type bed struct {
	url       string
	pool      *pgxpool.Pool
	directory *tenants.Directory
	model     *analytics.Model
	store     *orders.Store
}

// echo answers a stream with the name of its channel: what the API decides is
// which channel somebody gets.
type echo struct{}

func (echo) Serve(w http.ResponseWriter, _ *http.Request, channel string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: %s\n\n", channel)
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
}

func newBed(t *testing.T, change ...func(*api.Deps, *api.Config)) *bed {
	t.Helper()
	return newBedOn(t, database(t), change...)
}

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.Like(t, "api", prepare), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func prepare(ctx context.Context, dsn string) error {
	pool, err := pg.Open(ctx, dsn, pg.Config{})
	if err != nil {
		return err
	}
	defer pool.Close()
	return pg.Migrate(ctx, pool, tables.Migration(), tenants.Migration(), orders.Migration(), projection.Migration(), analytics.Migration())
}

func newBedOn(t *testing.T, pool *pgxpool.Pool, change ...func(*api.Deps, *api.Config)) *bed {
	t.Helper()
	reg := prometheus.NewRegistry()
	b := &bed{pool: pool, directory: tenants.New(pool, tenants.Config{}), model: analytics.New(pool)}
	deps := api.Deps{
		Orders:    orders.New(pool, outbox.New(contracts.All(), outbox.Config{}), orders.Config{}),
		Directory: b.directory, Counts: b.model, Analytics: b.model, Streams: echo{}, Tenants: b.directory, Keys: b.directory,
		Ready:      []api.Check{{Name: "database", Ask: pool.Ping}},
		Registerer: reg, Metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{}),
		Logger: slog.New(slog.DiscardHandler),
	}
	cfg := api.Config{}
	for _, c := range change {
		c(&deps, &cfg)
	}
	b.store = deps.Orders
	h, err := api.New(deps, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config = api.NewServer(h)
	s.Start()
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

// merchant is a tenant with its key.
type merchant struct {
	*bed
	id    uuid.UUID
	keyID uuid.UUID
	key   string
}

func (b *bed) merchant(t *testing.T, name string) merchant {
	t.Helper()
	tenant, err := b.directory.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	key, keyID, err := b.directory.IssueKey(t.Context(), tenant.ID, tenants.Merchant)
	if err != nil {
		t.Fatal(err)
	}
	return merchant{b, tenant.ID, keyID, key}
}

// admin is the platform with an administrator's key.
func (b *bed) admin(t *testing.T) merchant {
	t.Helper()
	key, keyID, err := b.directory.IssueKey(t.Context(), tenants.Platform, tenants.Admin)
	if err != nil {
		t.Fatal(err)
	}
	return merchant{b, tenants.Platform, keyID, key}
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request; headers are pairs of name and value.
func (b *bed) ask(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, got}
}

func (m merchant) ask(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	return m.bed.ask(t, method, path, body, append(headers, "Authorization", "Bearer "+m.key)...)
}

func (a answer) into(t *testing.T, status int, v any) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

func (m merchant) create(t *testing.T) (o api.Order) {
	t.Helper()
	m.ask(t, "POST", "/v1/orders", orderBody).into(t, http.StatusCreated, &o)
	return o
}

// move takes an order through states: by the API where a merchant may, else as
// the saga does.
func (m merchant) move(t *testing.T, o api.Order, to ...string) api.Order {
	t.Helper()
	path := "/v1/orders/" + o.ID.String()
	for _, s := range to {
		if !slices.Contains(orders.Allowed(orders.State(o.State), orders.System), orders.State(s)) {
			m.ask(t, "POST", path+"/transitions", `{"to":"`+s+`"}`).into(t, http.StatusOK, &o)
			continue
		}
		if _, err := m.store.Transition(t.Context(), m.id, o.ID, orders.Move{To: orders.State(s), Actor: orders.System}); err != nil {
			t.Fatal(err)
		}
		o = m.read(t, o)
	}
	return o
}

func (m merchant) read(t *testing.T, o api.Order) (now api.Order) {
	t.Helper()
	m.ask(t, "GET", "/v1/orders/"+o.ID.String(), "").into(t, http.StatusOK, &now)
	return now
}

const orderBody = `{
	"pickup":  {"street":"Rua Augusta","number":"1508","cep":"01304-001","district":"Consolação","lat":-23.5563,"lng":-46.6582},
	"dropoff": {"street":"Avenida Paulista","number":"1578","cep":"01310-200","district":"Bela Vista","lat":-23.5615,"lng":-46.656,"reference":"Portaria azul"},
	"customer": {"name":"Ana Beatriz Moura","phone":"(11) 91234-5678"},
	"items": [{"name":"Pão de queijo","quantity":6,"unit_price":315},{"name":"Café","quantity":2,"unit_price":950}]
}`

// with spoils the good body in one place.
func with(old, replacement string) string {
	if !strings.Contains(orderBody, old) {
		panic("no " + old + " in the body")
	}
	return strings.Replace(orderBody, old, replacement, 1)
}

// count runs an OrderCreated through the read model, as its consumer would.
func (m merchant) count(t *testing.T, o api.Order) {
	t.Helper()
	m.hear(t, m.id, time.Now(), contracts.OrderCreated{OrderID: o.ID, Version: 1, Currency: "BRL"})
}

// plain decodes what was written by the reader's own schema.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// hear gives the read models an event of a tenant.
func (b *bed) hear(t *testing.T, tenant uuid.UUID, at time.Time, data event.Data) {
	t.Helper()
	c := data.EventContract()
	value, err := c.Schema.Encode(data)
	if err != nil {
		t.Fatal(err)
	}
	e := projection.Event{Envelope: c.Envelope(event.WithTenant(t.Context(), tenant.String()), data, at), Value: value, Data: []byte(`{}`)}
	projector := analytics.NewProjector(projection.NewLog(b.pool, projection.LogConfig{}), plain{})
	err = pgx.BeginFunc(context.WithoutCancel(t.Context()), b.pool, func(tx pgx.Tx) error {
		return projector.Write(t.Context(), tx, []projection.Event{e})
	})
	if err != nil {
		t.Fatal(err)
	}
}
