package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/consumer/deadhttp"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/logistica/tracking"
	"github.com/waybillhq/waybill/logistica/web"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/queue"
	"github.com/waybillhq/waybill/queue/server"
	"github.com/waybillhq/waybill/saga"
	sagaserver "github.com/waybillhq/waybill/saga/server"
	"github.com/waybillhq/waybill/webhook"
	hookserver "github.com/waybillhq/waybill/webhook/server"
)

// stop is a route and how the walk calls it. Ids of the path are filled in with
// ours, and with some that exist nowhere.
type stop struct {
	pattern string
	query   string
	body    string
	open    string // why anybody may read what it shows, and what ids name then
	owner   string // whose key it takes: merchant if empty, else courier, admin, operator
	shared  bool   // it names nothing that is one tenant's
}

const (
	files = "the same bytes for everybody"
	link  = "whoever has the link may"
)

// walk is every route, in the order in which their owner calls them at the end.
var walk = slices.Concat(webhookWalk, []stop{
	{pattern: "GET /v1/courier", owner: "courier", shared: true},
	{pattern: "POST /v1/courier/status", body: `{"state":"AVAILABLE"}`, owner: "courier", shared: true},
	{pattern: "POST /v1/courier/positions", body: `{"positions":[{"seq":1,"lat":-23.55,"lng":-46.63,"fix_time":"2026-05-01T12:00:00Z"}]}`, owner: "courier", shared: true},
	{pattern: "GET /v1/courier/events", owner: "courier", shared: true},
	{pattern: "GET /v1/courier/jobs", owner: "courier", shared: true},
	{pattern: "POST /v1/courier/jobs/{id}/accept", owner: "courier"},
	{pattern: "POST /v1/courier/jobs/{id}/moves", body: `{"to":"ARRIVED_AT_MERCHANT"}`, owner: "courier"},
	{pattern: "POST /v1/courier/jobs/{id}/decline", owner: "courier"},

	{pattern: "GET /v1/me", shared: true},
	{pattern: "GET /v1/events", shared: true},
	{pattern: "GET /v1/orders", shared: true},
	{pattern: "POST /v1/orders", body: orderBody, shared: true},
	{pattern: "POST /orders", body: orderBody, shared: true},
	{pattern: "GET /v1/orders/counts", shared: true},
	{pattern: "GET /v1/orders/{id}"},
	{pattern: "GET /v1/orders/{id}/position"},
	{pattern: "POST /v1/orders/{id}/reassign"},
	{pattern: "POST /v1/orders/{id}/delivery-code/reset"},
	{pattern: "POST /v1/orders/{id}/transitions", body: `{"to":"CANCELLED","expected_version":1}`},
	{pattern: "GET /v1/reports/day.csv", query: "?date=2026-05-01", shared: true},
	{pattern: "GET /v1/couriers", shared: true},
	{pattern: "GET /v1/keys", shared: true},
	{pattern: "POST /v1/keys/{id}/rotate"},

	{pattern: "GET /v1/admin/tenants", owner: "admin", shared: true},
	{pattern: "POST /v1/admin/tenants", body: `{"name":"Nova"}`, owner: "admin", shared: true},
	{pattern: "GET /v1/admin/tenants/{id}/keys", owner: "admin"},
	{pattern: "POST /v1/admin/tenants/{id}/keys", body: `{"scope":"merchant"}`, owner: "admin"},
	{pattern: "POST /v1/admin/tenants/{id}/keys/{key}/rotate", owner: "admin"},
	{pattern: "DELETE /v1/admin/tenants/{id}/keys/{key}", owner: "admin"},
	{pattern: "GET /v1/faults", owner: "admin", shared: true},
	{pattern: "PUT /v1/faults/{name}", body: `{"value":1}`, owner: "admin", shared: true},
	{pattern: "DELETE /v1/faults/{name}", owner: "admin", shared: true},

	{pattern: "GET /v1/analytics/orders", shared: true},
	{pattern: "GET /v1/analytics/deliveries", shared: true},
	{pattern: "GET /v1/analytics/fees", shared: true},
	{pattern: "GET /v1/analytics/couriers", owner: "admin", shared: true},
	{pattern: "GET /v1/analytics/tenants", owner: "admin", shared: true},

	{pattern: "GET /v1/queues", shared: true},
	{pattern: "POST /v1/queues", body: `{"name":"a-queue-of-mine"}`, shared: true},
	{pattern: "GET /v1/queues/{queue}"},
	{pattern: "POST /v1/queues/{queue}/messages", body: `{"messages":[{"body":1}]}`},
	{pattern: "POST /v1/queues/{queue}/receive", body: `{}`},
	{pattern: "POST /v1/queues/{queue}/ack", body: `{"receipts":["RECEIPT"]}`, shared: true}, // a receipt is all it goes by
	{pattern: "POST /v1/queues/{queue}/nack", body: `{"receipts":["RECEIPT"]}`, shared: true},
	{pattern: "POST /v1/queues/{queue}/extend", body: `{"receipts":["RECEIPT"],"lease_ms":30000}`, shared: true},
	{pattern: "GET /v1/queues/{queue}/dead"},
	{pattern: "POST /v1/queues/{queue}/dead/redrive", body: `{}`},
	{pattern: "POST /v1/queues/{queue}/dead/drop", body: `{}`},
	{pattern: "POST /v1/queues/{queue}/purge"},
	{pattern: "DELETE /v1/queues/{queue}"},
	{pattern: "GET /v1/queues/openapi.json", open: files},

	{pattern: "GET /v1/sagas", shared: true},
	{pattern: "GET /v1/sagas/{saga}/{key}"},
	{pattern: "POST /v1/sagas/{saga}/{key}/resume", body: `{"tenant":"TENANT","round":1,"reason":"x"}`, owner: "admin"},
	{pattern: "POST /v1/sagas/{saga}/{key}/skip", body: `{"tenant":"TENANT","round":1,"reason":"x"}`, owner: "admin"},
	{pattern: "GET /v1/sagas/openapi.json", open: files},

	{pattern: "GET /v1/dead-letters", owner: "operator", shared: true},
	{pattern: "GET /v1/dead-letters/causes", owner: "operator", shared: true},
	{pattern: "GET /v1/dead-letters/actions", owner: "operator", shared: true},
	{pattern: "GET /v1/dead-letters/events/{event}", owner: "operator"},
	{pattern: "GET /v1/dead-letters/redrive/{run}", owner: "operator", shared: true},
	{pattern: "POST /v1/dead-letters/redrive", body: `{"group":"billing","all":true,"by":"x","reason":"y","dry_run":true}`, owner: "operator", shared: true},
	{pattern: "POST /v1/dead-letters/drop", body: `{"group":"billing","event":"EVENT","by":"x","reason":"y"}`, owner: "operator"},
	{pattern: "GET /v1/lag", open: machine},
	{pattern: "GET /v1/lag/", open: machine},
	{pattern: "GET /v1/scale/", open: machine},
	{pattern: "GET /metrics", open: machine},
	{pattern: "GET /healthz", open: files},
	{pattern: "GET /readyz", open: files},

	{pattern: "GET /v1/track/{token}", open: link},
	{pattern: "GET /track/{token}/events", open: link},
	{pattern: "GET /track/{token}", open: files},
	{pattern: "GET /{$}", open: files},
	{pattern: "GET /courier", open: files},
	{pattern: "GET /faults", open: files},
	{pattern: "GET /webhooks", open: files},
	{pattern: "GET /analytics", open: files},
	{pattern: "GET /favicon.ico", open: files},
	{pattern: "GET /assets/{path...}", open: files},
	{pattern: "GET /docs", open: files},
	{pattern: "GET /docs/style.css", open: files},
	{pattern: "GET /openapi.json", open: files},
})

// machine is what figures of all tenants together show, to who asks on the
// machine itself or where its operator listens.
const machine = "the operator's figures, which name no tenant"

// town is everything that is served, and what is ours in it.
type town struct {
	*fleet
	handler  http.Handler
	tracker  *tracking.Tracker
	queues   *httptest.Server
	sagas    *httptest.Server
	hooks    *httptest.Server
	webhooks *webhook.Store
	ours     merchant
	rui      rider // who has our order
	admin    merchant
	operator string
	known    map[string]string // values of path parameters, by whose path they are in
	secrets  []string          // what nobody else may be shown
}

const deadEvent = "01a22876-2c72-75f0-aa72-24d230e51961"

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{operator: "an operator's key"}
	pool := database(t)
	if err := pg.Migrate(t.Context(), pool, append([]pg.Migration{
		faults.Migration(), tracking.Migration(), queue.Migration(), saga.Migration(), incident.Migration(), webhook.Migration(),
	}, consumer.Migrations())...); err != nil {
		t.Fatal(err)
	}
	w.tracker = tracking.New(pool, tracking.Config{})
	w.fleet = newFleetOn(t, pool, func(d *api.Deps, _ *api.Config) {
		d.Positions, d.Faults = w.tracker, faults.New(pool, faults.Config{})
		d.Couriers = noCards{}
		d.Monitor = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"groups":[]}`) })
		d.Pages = func(mux *http.ServeMux) error {
			deadhttp.Register(mux, pool, deadhttp.Config{Key: w.operator, Logger: slog.New(slog.DiscardHandler)})
			return web.Register(mux)
		}
		for i, v := 0, reflect.ValueOf(*d); i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Fatalf("the walk leaves out what api.Deps.%s serves", v.Type().Field(i).Name)
			}
		}
		h, err := api.New(*d, api.Config{})
		if err != nil {
			t.Fatal(err)
		}
		w.handler = h
		d.Registerer = nil
	})
	signals := queue.NewSignals(pool, slog.New(slog.DiscardHandler))
	queues, err := server.New(server.Deps{
		DB: pool, Signals: signals, Logger: slog.New(slog.DiscardHandler),
		Authenticate: func(ctx context.Context, key string) (string, error) {
			m, err := w.directory.Authenticate(ctx, key)
			if err != nil || m.Scope != tenants.Merchant {
				return "", server.ErrKey
			}
			return m.ID.String(), nil
		},
	}, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w.queues = httptest.NewServer(queues)
	t.Cleanup(w.queues.Close)
	w.sagas = newSagas(t, pool, w.directory)
	w.hooks, w.webhooks = newHooks(t, pool, w.directory)
	w.settle(t)
	return w
}

type noCards struct{}

func (noCards) Cards(context.Context, uuid.UUID, []uuid.UUID) (map[uuid.UUID]api.CourierCard, error) {
	return nil, nil
}

// settle has us do what others must not learn of.
func (w *town) settle(t *testing.T) {
	t.Helper()
	w.ours, w.admin = w.merchant(t, "Padaria Nossa"), w.bed.admin(t)
	w.rui = w.rider(t, w.ours)
	w.rui.self(t, "POST", "/v1/courier/status", `{"state":"AVAILABLE"}`)
	var o api.Order
	w.ours.ask(t, "POST", "/v1/orders", strings.NewReplacer("Ana Beatriz Moura", "Joana Segredo", "91234-5678", "98888-7777").Replace(orderBody)).
		into(t, http.StatusCreated, &o)
	give(t, w.ours, contracts.OrderCreated{OrderID: o.ID, Version: 1}, w.OrderCreated)
	o = w.ours.move(t, o, "ASSIGNING", "ASSIGNED")
	give(t, w.ours, contracts.OrderAssigned{OrderID: o.ID, Version: 3, CourierID: w.rui.id, Attempt: 1}, w.OrderAssigned)
	searching := w.ours.create(t) // has no courier to let go
	out := tracked{w.bed, w.tracker}.out(t, w.ours, o)
	_, spare, err := w.directory.IssueKey(t.Context(), w.ours.id, tenants.Merchant)
	if err != nil {
		t.Fatal(err)
	}
	w.call(t, "POST", "/v1/queues", `{"name":"fila-nossa"}`, w.ours.key)
	w.call(t, "POST", "/v1/queues/fila-nossa/messages", `{"messages":[{"body":"segredo-da-fila"}]}`, w.ours.key)
	_, err = w.pool.Exec(t.Context(), `INSERT INTO waybill.parked (group_name, topic, partition, "offset", key, event_id, type, tenant,
			subject, sequence, record_time, header_names, header_values, value, state, error, class, cause, cause_id, failures,
			dead_at, death_id, copied_at)
		VALUES ('billing', 'orders.events', 0, 1, 'segredo-morto', $1, 'OrderCreated', $2, '', 1, now(),
			'{ce_id}', ARRAY['x'::bytea], 'bytes', 'dead', 'no account 7', 'other', 'no account #', 'c0ffee00', 3, now(), gen_random_uuid(), now())`,
		deadEvent, w.ours.id.String())
	if err != nil {
		t.Fatal(err)
	}
	aSaga(t, w.pool, w.ours.id.String(), spare.String()) // so that {key} names both
	endpoint, hookSecret := aHook(t, w.pool, w.webhooks, w.ours.id.String(), deadEvent)
	w.known = map[string]string{
		"/v1/orders/{id}": o.ID.String(), "/v1/orders/{id}/reassign": searching.ID.String(), "/v1/courier/jobs/{id}": o.ID.String(), "{token}": o.TrackingToken,
		"/v1/keys/{id}": spare.String(), "{key}": spare.String(), "/v1/admin/tenants/{id}": w.ours.id.String(),
		"{queue}": "fila-nossa", "{event}": deadEvent, "EVENT": deadEvent,
		"TENANT": w.ours.id.String(), "{endpoint}": endpoint,
	}
	w.secrets = []string{
		w.ours.id.String(), o.ID.String(), searching.ID.String(), o.TrackingToken, w.rui.id.String(), out.String(), w.ours.keyID.String(), spare.String(), deadEvent,
		"Padaria Nossa", "Joana", "98888", "Rui Alves", "90000-0000", "fila-nossa", "segredo-da-fila", "segredo-morto",
		endpoint, hookSecret, "gancho-secreto", "corpo-secreto",
	}
}

// call asks whichever server has the path.
func (w *town) call(t *testing.T, method, path, body, key string) answer {
	t.Helper()
	at := *w.bed
	if path == "/v1/queues" || strings.HasPrefix(path, "/v1/queues/") {
		at.url = w.queues.URL
	}
	if path == sagaserver.Prefix || strings.HasPrefix(path, sagaserver.Prefix+"/") {
		at.url = w.sagas.URL
	}
	if strings.HasPrefix(path, hookserver.Prefix+"/") {
		at.url = w.hooks.URL
	}
	headers := []string{"Content-Type", "application/json"}
	if key != "" {
		headers = append(headers, "Authorization", "Bearer "+key)
	}
	return at.ask(t, method, path, body, headers...)
}

// fill puts values where the pattern, or the body, names a parameter. Those it
// is not given are of no tenant.
func fill(text string, values map[string]string) string {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(values))) { // the longest of a path first
		if before, after, ok := strings.Cut(name, "{id}"); ok {
			text = strings.Replace(text, name, before+values[name]+after, 1)
			continue
		}
		text = strings.ReplaceAll(text, name, values[name])
	}
	return strings.NewReplacer("{$}", "", "{path...}", "desk.css", "{name}", "poison-event", "{saga}", sagaName, "{run}", uuid.Nil.String(), "{group...}", "orders").Replace(text)
}

// unknown is a value of the same form for each of known.
func unknown(known map[string]string) map[string]string {
	out := map[string]string{}
	for name, v := range known {
		switch name {
		case "{token}":
			out[name] = strings.Repeat("A", len(v))
		case "{queue}":
			out[name] = "fila-outra"
		default:
			out[name] = event.NewID().String()
		}
	}
	return out
}

var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)|fila-(nossa|outra)`)

// shape is an answer without what differs from one request to the next.
func (a answer) shape() string {
	var head []string
	for _, name := range []string{"Content-Type", "WWW-Authenticate", "Retry-After", "Allow", "Location", "Cache-Control"} {
		head = append(head, a.header.Get(name))
	}
	return http.StatusText(a.status) + "|" + strings.Join(head, "|") + "|" + changing.ReplaceAllString(string(a.body), "…")
}

// Nobody learns from any route what is another tenant's, nor that it is there:
// what exists answers, to who may not see it, as what does not.
func TestTheWalkFindsNoWayToAnothersData(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	theirs := w.merchant(t, "Pizzaria Deles")
	theirRider, idle := w.rider(t, theirs), w.rider(t, w.ours)
	revoked, revokedID, err := w.directory.IssueKey(t.Context(), w.ours.id, tenants.Merchant)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.directory.RevokeKey(t.Context(), w.ours.id, revokedID); err != nil {
		t.Fatal(err)
	}
	strangers := map[string]string{
		"nobody": "", "another merchant": theirs.key, "another's courier": theirRider.key, "a courier without our order": idle.key, "our revoked key": revoked,
	}
	// A courier who rides for us and has no order knows whose bread it is.
	knows := map[string][]string{"a courier without our order": {"Padaria Nossa", "Rui Alves", "90000-0000"}, "another's courier": {"Rui Alves", "90000-0000"}, "another merchant": {"Rui Alves"}}
	for _, s := range walk {
		method, path, _ := strings.Cut(s.pattern, " ")
		for who, key := range strangers {
			there := w.call(t, method, fill(path, w.known)+s.query, fill(s.body, w.known), key)
			if s.open != link {
				for _, secret := range w.secrets {
					if strings.Contains(string(there.body), secret) && !slices.Contains(knows[who], secret) {
						t.Errorf("%s shows %q to %s: %s", s.pattern, secret, who, there.body)
					}
				}
			}
			if s.open != "" {
				continue
			}
			if (who == "nobody" || who == "our revoked key") && there.status != http.StatusUnauthorized {
				t.Errorf("%s answers %s with %d", s.pattern, who, there.status)
			}
			if s.shared {
				continue
			}
			none := unknown(w.known)
			absent := w.call(t, method, fill(path, none)+s.query, fill(s.body, none), key)
			if there.shape() != absent.shape() || there.status != absent.status {
				t.Errorf("%s tells %s that it exists:\n%d %s\n%d %s", s.pattern, who, there.status, there.shape(), absent.status, absent.shape())
			}
			if there.status < 400 {
				t.Errorf("%s lets %s in: %d %s", s.pattern, who, there.status, there.body)
			}
		}
	}
	w.ownersSeeTheirs(t)
}

// ownersSeeTheirs makes sure that the walk asked for what exists: to its owner it
// answers differently from what does not.
func (w *town) ownersSeeTheirs(t *testing.T) {
	t.Helper()
	keys := map[string]string{"": w.ours.key, "courier": w.rui.key, "admin": w.admin.key, "operator": w.operator}
	for _, s := range walk {
		method, path, _ := strings.Cut(s.pattern, " ")
		key := keys[s.owner]
		a := w.call(t, method, fill(path, w.known)+s.query, fill(s.body, w.known), key)
		if s.open == "" && (a.status == http.StatusUnauthorized || a.status == http.StatusForbidden || a.status == http.StatusMethodNotAllowed) {
			t.Errorf("%s refuses its own: %d %s", s.pattern, a.status, a.body)
		}
		if s.open != "" || s.shared {
			continue
		}
		none := unknown(w.known)
		if b := w.call(t, method, fill(path, none)+s.query, fill(s.body, none), key); a.shape() == b.shape() {
			t.Errorf("%s was walked with an id that its owner does not see either: %d %s", s.pattern, a.status, a.body)
		}
	}
}

// A route that the walk does not know fails it.
func TestTheWalkKnowsEveryRoute(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	var served, walked []string
	served = append(served, api.Patterns(w.handler)...)
	for _, at := range []string{w.url + "/openapi.json", w.queues.URL + server.Prefix + "/openapi.json", w.sagas.URL + sagaserver.Prefix + "/openapi.json", w.hooks.URL + hookserver.Prefix + "/openapi.json"} {
		served = append(served, documented(t, at)...)
	}
	for _, s := range walk {
		walked = append(walked, s.pattern)
	}
	slices.Sort(served)
	for _, pattern := range slices.Compact(served) {
		if !slices.Contains(walked, pattern) {
			t.Errorf("%q is a route that the walk does not know: add a stop for it", pattern)
		}
	}
	for _, pattern := range walked {
		if !slices.Contains(served, pattern) && pattern != "GET "+server.Prefix+"/openapi.json" && pattern != "GET "+sagaserver.Prefix+"/openapi.json" && pattern != "GET "+hookserver.Prefix+"/openapi.json" {
			t.Errorf("the walk goes to %q, which is not there", pattern)
		}
	}
}

// documented is the operations of an OpenAPI document, as patterns.
func documented(t *testing.T, url string) (patterns []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var doc struct{ Paths map[string]map[string]any }
	if err := json.NewDecoder(res.Body).Decode(&doc); err != nil || len(doc.Paths) == 0 {
		t.Fatalf("%s: %v", url, err)
	}
	for path, item := range doc.Paths {
		for method := range item {
			patterns = append(patterns, strings.ToUpper(method)+" "+path)
		}
	}
	return patterns
}
