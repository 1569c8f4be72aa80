package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/saga"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type client struct {
	t   *testing.T
	url string
	key string
}

// newServer serves the trips of ana and rui: the seat of each one's trip-1
// should have been given back and needs an operator.
func newServer(t *testing.T) *client {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := pg.Migrate(t.Context(), db, saga.Migration()); err != nil {
		t.Fatal(err)
	}
	fill(t, db, "ana", "01a22876-2c72-75f0-aa72-24d230e51961")
	fill(t, db, "rui", "01a22876-2c72-75f0-aa72-24d230e51962")
	h, err := New(Deps{DB: db, Logger: slog.New(slog.DiscardHandler), Authenticate: func(_ context.Context, key string) (Caller, error) {
		switch key {
		case "ana", "rui":
			return Caller{Tenant: key}, nil
		case "ops":
			return Caller{Operator: "eva"}, nil
		case "down":
			return Caller{}, errors.New("asked in vain")
		case "nobody":
			return Caller{}, nil
		}
		return Caller{}, ErrKey
	}}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() { web.Close(); http.DefaultClient.CloseIdleConnections() })
	return &client{t, web.URL, "ana"}
}

func fill(t *testing.T, db *pgxpool.Pool, tenant, id string) {
	t.Helper()
	err := pg.InTenant(t.Context(), db, tenant, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`INSERT INTO saga.plans (name, plan) VALUES ('book-trip', '{"name": "book-trip", "steps": [
			{"name": "seat", "undo": true, "within": 1000000000, "pause": 1000000000, "asks": 2}]}') ON CONFLICT DO NOTHING`)
		b.Queue(`INSERT INTO saga.instances (tenant, saga, key, round, id, state, step, direction, asked, since, started_at, updated_at, correlation_id)
			VALUES ($1, 'book-trip', 'trip-1', 1, $2, 'needs_operator', 'seat', 'back', 2, now(), now(), now(), 'c')`, tenant, id)
		b.Queue(`INSERT INTO saga.entries (tenant, saga, key, round, id, what, step, direction, time, seen_at)
			SELECT $1, 'book-trip', 'trip-1', 1, gen_random_uuid(), what, step, direction, now(), now()
			FROM (VALUES ('done', 'seat', ''), ('aborted', '', ''), ('gave_up', 'seat', 'back')) v(what, step, direction)`, tenant)
		return tx.SendBatch(t.Context(), &b).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *client) as(key string) *client { return &client{c.t, c.url, key} }

type object = map[string]any

// call sends JSON and reads it.
func (c *client) call(method, path string, in any, want int) object {
	c.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		c.t.Fatal(err)
	}
	var reader io.Reader
	if in != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, reader)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != want {
		c.t.Fatalf("%s %s: %d %s, want %d", method, path, resp.StatusCode, text, want)
	}
	if want >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
		c.t.Errorf("%s %s: no problem document: %s", method, path, text)
	}
	out := object{}
	if err := json.Unmarshal(text, &out); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	return out
}

func keysOf(page object) (out string) {
	for _, in := range page["instances"].([]any) {
		out += in.(object)["tenant"].(string) + " "
	}
	return out
}

func TestATenantReadsItsOwnAndChangesNothing(t *testing.T) {
	ana := newServer(t)
	if got := keysOf(ana.call("GET", "/v1/sagas?stuck=true", nil, 200)); got != "ana " {
		t.Error(got)
	}
	ana.call("GET", "/v1/sagas?tenant=rui", nil, 404)
	ana.call("GET", "/v1/sagas/book-trip/trip-1?tenant=rui", nil, 404)
	if d := ana.call("GET", "/v1/sagas/book-trip/trip-1", nil, 200); d["tenant"] != "ana" || d["state"] != "needs_operator" || len(d["entries"].([]any)) != 3 {
		t.Errorf("%v", d)
	}
	ana.call("GET", "/v1/sagas/book-trip/trip-9", nil, 404)
	ana.call("POST", "/v1/sagas/book-trip/trip-1/resume", object{}, 403)
	ana.call("POST", "/v1/sagas/book-trip/trip-1/skip", object{"reason": "x"}, 403)
}

func TestAnOperatorSeesAllAndActs(t *testing.T) {
	ops := newServer(t).as("ops")
	if got := keysOf(ops.call("GET", "/v1/sagas", nil, 200)); got != "rui ana " {
		t.Error(got)
	}
	page := ops.call("GET", "/v1/sagas?limit=1", nil, 200)
	if got := keysOf(ops.call("GET", "/v1/sagas?limit=1&after="+page["next"].(string), nil, 200)); got != "ana " {
		t.Error(got)
	}
	p := ops.call("POST", "/v1/sagas/book-trip/trip-1/resume", object{}, 422)
	if !strings.Contains(p["detail"].(string), "say whose is meant") {
		t.Errorf("%v", p)
	}
	ops.call("POST", "/v1/sagas/book-trip/trip-1/resume", object{"tenant": "rui", "reason": "seats are up"}, 200)
	p = ops.call("POST", "/v1/sagas/book-trip/trip-1/resume", object{"tenant": "rui"}, 409)
	if !strings.Contains(p["detail"].(string), "needs no operator") {
		t.Errorf("%v", p)
	}
	ops.call("POST", "/v1/sagas/book-trip/trip-1/skip", object{"tenant": "ana"}, 422)
	ops.call("POST", "/v1/sagas/book-trip/trip-1/skip", object{"tenant": "ana", "step": "hotel", "reason": "x"}, 409)
	if in := ops.call("POST", "/v1/sagas/book-trip/trip-1/skip", object{"tenant": "ana", "step": "seat", "reason": "by telephone"}, 200); in["state"] != "compensated" {
		t.Errorf("%v", in)
	}
	d := ops.call("GET", "/v1/sagas/book-trip/trip-1?tenant=ana&round=1", nil, 200)
	if last := d["entries"].([]any)[3].(object); last["by"] != "eva by HTTP" || last["reason"] != "by telephone" {
		t.Errorf("%v", last)
	}
}

func TestWhoIsNobodyGetsNothing(t *testing.T) {
	c := newServer(t)
	c.as("eve").call("GET", "/v1/sagas", nil, 401)
	c.as("nobody").call("GET", "/v1/sagas", nil, 401)
	c.as("down").call("GET", "/v1/sagas", nil, 500)
	c.call("GET", "/v1/sagas?state=odd", nil, 422)
	c.call("GET", "/v1/sagas?after=nonsense", nil, 422)
	c.call("GET", "/v1/sagas?unknown=1", nil, 422)
	c.call("DELETE", "/v1/sagas", nil, 404)
	if doc := c.call("GET", "/v1/sagas/openapi.json", nil, 200); doc["openapi"] != "3.1.0" {
		t.Errorf("%v", doc["openapi"])
	}
}
