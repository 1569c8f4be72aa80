package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/api"
)

// problem is what every error must look like.
type problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	RequestID                     string `json:"request_id"`
	Errors                        []struct{ Message, Location string }
	From, To                      string
	Allowed                       []string
	Version                       int64
}

func (a answer) problem(t *testing.T, status int) (p problem) {
	t.Helper()
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("status %d, content type %q: %s", a.status, ct, a.body)
	}
	a.into(t, status, &p)
	if p.Status != status || p.Type == "" || p.Title == "" || p.Detail == "" || p.RequestID == "" || p.RequestID != a.header.Get("X-Request-Id") {
		t.Errorf("problem lacks something: %s", a.body)
	}
	return p
}

func (p problem) locations() string {
	var all []string
	for _, e := range p.Errors {
		if e.Message == "" {
			all = append(all, "(no message)")
		}
		all = append(all, e.Location)
	}
	return strings.Join(all, " ")
}

func TestBadInputIsRefusedByEveryEndpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m := b.merchant(t, "Padaria")
	o := m.create(t)
	one, moves := "/v1/orders/"+o.ID.String(), "/v1/orders/"+o.ID.String()+"/transitions"
	nowhere := "/v1/orders/" + uuid.NewString()
	long := strings.Repeat("x", 201)
	key := func(v string) []string { return []string{"Idempotency-Key", v} }
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		locations          string
	}{
		"unknown address":           {"GET", "/v1/nothing", "", nil, 404, ""},
		"root":                      {"GET", "/", "", nil, 404, ""},
		"wrong method":              {"DELETE", "/v1/orders", "", nil, 405, ""},
		"wrong method on an order":  {"PUT", one, "{}", nil, 405, ""},
		"wrong method on a stream":  {"POST", "/v1/events", "", nil, 405, ""},
		"trailing slash":            {"GET", "/v1/orders/", "", nil, 404, ""},
		"no body":                   {"POST", "/v1/orders", "", nil, 400, ""},
		"no JSON":                   {"POST", "/v1/orders", "{", nil, 400, "body"},
		"two values":                {"POST", "/v1/orders", "{}{}", nil, 400, "body"},
		"an array":                  {"POST", "/v1/orders", "[]", nil, 422, "body"},
		"null":                      {"POST", "/v1/orders", "null", nil, 422, "body"},
		"wrong media type":          {"POST", "/v1/orders", orderBody, []string{"Content-Type", "text/plain"}, 415, "body"},
		"form":                      {"POST", "/v1/orders", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "body"},
		"too large":                 {"POST", "/v1/orders", strings.Repeat(" ", 1<<20+1), nil, 413, ""},
		"unversioned, no JSON":      {"POST", "/orders", "{", nil, 400, "body"},
		"unknown field":             {"POST", "/v1/orders", with(`"items"`, `"tenant":"x","items"`), nil, 422, "body.tenant"},
		"missing field":             {"POST", "/v1/orders", with(`"street":"Rua Augusta",`, ``), nil, 422, "body.pickup"},
		"no items":                  {"POST", "/v1/orders", with(`[{"name":"Pão de queijo","quantity":6,"unit_price":315},{"name":"Café","quantity":2,"unit_price":950}]`, `[]`), nil, 422, "body.items"},
		"items null":                {"POST", "/v1/orders", with(`[{"name":"Pão de queijo","quantity":6,"unit_price":315},{"name":"Café","quantity":2,"unit_price":950}]`, `null`), nil, 422, "body.items"},
		"quantity zero":             {"POST", "/v1/orders", with(`"quantity":6`, `"quantity":0`), nil, 422, "body.items[0].quantity"},
		"quantity not whole":        {"POST", "/v1/orders", with(`"quantity":6`, `"quantity":1.5`), nil, 422, "body.items[0].quantity"},
		"quantity huge":             {"POST", "/v1/orders", with(`"quantity":6`, `"quantity":99999999999999999999`), nil, 422, "body.items[0].quantity"},
		"quantity text":             {"POST", "/v1/orders", with(`"quantity":6`, `"quantity":"6"`), nil, 422, "body.items[0].quantity"},
		"price negative":            {"POST", "/v1/orders", with(`"unit_price":950`, `"unit_price":-1`), nil, 422, "body.items[1].unit_price"},
		"latitude":                  {"POST", "/v1/orders", with(`-23.5615`, `-93.5615`), nil, 422, "body.dropoff.lat"},
		"latitude beyond a double":  {"POST", "/v1/orders", with(`-23.5615`, `1e999`), nil, 400, "body"},
		"CEP":                       {"POST", "/v1/orders", with(`01310-200`, `1310-200`), nil, 422, "body.dropoff.cep"},
		"control character":         {"POST", "/v1/orders", with(`Bela Vista`, `Bela\u0000Vista`), nil, 422, "body.dropoff.district"},
		"promise in the past":       {"POST", "/v1/orders", with(`"items"`, `"promised_at":"2020-01-01T00:00:00Z","items"`), nil, 422, "body.promised_at"},
		"promise no time":           {"POST", "/v1/orders", with(`"items"`, `"promised_at":"soon","items"`), nil, 422, "body.promised_at"},
		"two faults":                {"POST", "/v1/orders", strings.Replace(with(`-23.5615`, `-93`), `01310-200`, `x`, 1), nil, 422, "body.dropoff.cep body.dropoff.lat"},
		"idempotency key too long":  {"POST", "/v1/orders", orderBody, key(strings.Repeat("k", 129)), 422, "header.Idempotency-Key"},
		"idempotency key spaced":    {"POST", "/v1/orders", orderBody, key("a key"), 422, "header.Idempotency-Key"},
		"list, unknown state":       {"GET", "/v1/orders?state=EATEN", "", nil, 422, "query.state"},
		"list, limit zero":          {"GET", "/v1/orders?limit=0", "", nil, 422, "query.limit"},
		"list, limit large":         {"GET", "/v1/orders?limit=201", "", nil, 422, "query.limit"},
		"list, limit no number":     {"GET", "/v1/orders?limit=ten", "", nil, 422, "query.limit"},
		"list, cursor":              {"GET", "/v1/orders?cursor=AAAA", "", nil, 422, "query.cursor"},
		"list, cursor no base64":    {"GET", "/v1/orders?cursor=%00", "", nil, 422, "query.cursor"},
		"list, unknown parameter":   {"GET", "/v1/orders?tenant=x", "", nil, 422, "query.tenant"},
		"counts, unknown parameter": {"GET", "/v1/orders/counts?tenant=x", "", nil, 422, "query.tenant"},
		"read, no id":               {"GET", "/v1/orders/nothing", "", nil, 404, ""},
		"read, braced id":           {"GET", "/v1/orders/%7B" + o.ID.String() + "%7D", "", nil, 404, ""},
		"read, unknown id":          {"GET", nowhere, "", nil, 404, ""},
		"move, unknown order":       {"POST", nowhere + "/transitions", `{"to":"ASSIGNING"}`, nil, 404, ""},
		"move, no id":               {"POST", "/v1/orders/nothing/transitions", `{"to":"ASSIGNING"}`, nil, 404, ""},
		"move, no body":             {"POST", moves, "", nil, 400, ""},
		"move, no state":            {"POST", moves, "{}", nil, 422, "body"},
		"move, unknown state":       {"POST", moves, `{"to":"EATEN"}`, nil, 422, "body.to"},
		"move, long reason":         {"POST", moves, `{"to":"ASSIGNING","reason":"` + long + `"}`, nil, 422, "body.reason"},
		"move, negative version":    {"POST", moves, `{"to":"ASSIGNING","expected_version":-1}`, nil, 422, "body.expected_version"},
		"move, actor":               {"POST", moves, `{"to":"ASSIGNING","actor":"COURIER"}`, nil, 422, "body.actor"},
		"move, forbidden":           {"POST", moves, `{"to":"DELIVERED"}`, nil, 409, ""},
		"move, wrong media type":    {"POST", moves, `to=ASSIGNING`, []string{"Content-Type", "text/plain"}, 415, "body"},
		"move, too large":           {"POST", moves, strings.Repeat(" ", 1<<20+1), nil, 413, ""},
		"day, no date":              {"GET", "/v1/reports/day.csv", "", nil, 422, "query.date"},
		"day, no day":               {"GET", "/v1/reports/day.csv?date=2026-02-30", "", nil, 422, "query.date"},
		"day, two":                  {"GET", "/v1/reports/day.csv?date=2026-02-03&date=2026-02-04", "", nil, 422, "query.date"},
		"day, injected":             {"GET", "/v1/reports/day.csv?date=2026-02-03%0d%0aX:1", "", nil, 422, "query.date"},
		"day, unknown parameter":    {"GET", "/v1/reports/day.csv?date=2026-02-03&tenant=x", "", nil, 422, "query.tenant"},
		"reassign, unknown order":   {"POST", nowhere + "/reassign", "", nil, 404, ""},
		"reassign, no id":           {"POST", "/v1/orders/nothing/reassign", "", nil, 404, ""},
		"reassign, no courier":      {"POST", "/v1/orders/" + o.ID.String() + "/reassign", "", nil, 409, ""},
		"reset code, unknown order": {"POST", nowhere + "/delivery-code/reset", "", nil, 404, ""},
		"track, unknown":            {"GET", "/v1/track/" + strings.Repeat("x", 32), "", nil, 404, ""},
		"track, no token":           {"GET", "/v1/track/x", "", nil, 404, ""},
		"track, strange token":      {"GET", "/v1/track/%27%3B%00", "", nil, 404, ""},
		"track stream, unknown":     {"GET", "/track/" + strings.Repeat("x", 32) + "/events", "", nil, 404, ""},
		"track stream, order id":    {"GET", "/track/" + o.ID.String() + "/events", "", nil, 404, ""},
	} {
		a := m.ask(t, c.method, c.path, c.body, c.headers...)
		if a.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, a.status, c.status, a.body)
			continue
		}
		p := a.problem(t, c.status)
		if got := p.locations(); got != c.locations {
			t.Errorf("%s: points to %q, want %q: %s", name, got, c.locations, a.body)
		}
		if len(a.body) > 2000 {
			t.Errorf("%s: echoes %d bytes", name, len(a.body))
		}
	}
	var list struct{ Orders []api.Order }
	m.ask(t, "GET", "/v1/orders", "").into(t, http.StatusOK, &list)
	if len(list.Orders) != 1 || list.Orders[0].Version != 1 {
		t.Errorf("something was done: %+v", list.Orders)
	}
}

func TestWrongMethodNamesTheRightOnes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	a := b.ask(t, "DELETE", "/v1/orders", "")
	a.problem(t, http.StatusMethodNotAllowed)
	if allow := a.header.Get("Allow"); allow != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", allow)
	}
	if a := b.ask(t, "HEAD", "/v1/events", ""); a.status != http.StatusMethodNotAllowed {
		t.Errorf("HEAD of a stream: %d", a.status)
	}
}

func TestForbiddenTransitionSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	o := m.create(t)
	moves := "/v1/orders/" + o.ID.String() + "/transitions"
	p := m.ask(t, "POST", moves, `{"to":"DELIVERED"}`).problem(t, http.StatusConflict)
	if p.From != "CREATED" || p.To != "DELIVERED" || strings.Join(p.Allowed, " ") != "CANCELLED" || p.Type != "/docs#forbidden-transition" {
		t.Errorf("%+v", p)
	}
	p = m.ask(t, "POST", moves, `{"to":"ASSIGNING","expected_version":4}`).problem(t, http.StatusConflict)
	if p.Version != 1 || p.From != "CREATED" || len(p.Allowed) != 1 || p.Type != "/docs#version-conflict" {
		t.Errorf("%+v", p)
	}
	m.move(t, o, "CANCELLED")
	a := m.ask(t, "POST", moves, `{"to":"ASSIGNING"}`)
	if p := a.problem(t, http.StatusConflict); p.From != "CANCELLED" || !strings.Contains(string(a.body), `"allowed":[]`) {
		t.Errorf("at an end: %s", a.body)
	}
}

func TestChunkedBodyIsBoundedToo(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	req, err := http.NewRequestWithContext(t.Context(), "POST", m.url+"/v1/orders", endless{})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var p problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != http.StatusRequestEntityTooLarge || p.Status != 413 {
		t.Errorf("status %d, %+v, %v", res.StatusCode, p, err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}
