package deadhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/consumer/deadhttp"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

const (
	headA  = "01a22876-2c72-75f0-aa72-24d230e51961"
	nextA  = "01a22876-2c72-75f0-aa72-24d230e51962"
	headB  = "01a22876-2c72-75f0-aa72-24d230e51963"
	secret = "a key of an operator"
)

// bed is a server on a database with two dead keys, a (with one event behind)
// and b.
type bed struct {
	t   *testing.T
	db  *pgxpool.Pool
	url string
	key string
}

func newBed(t *testing.T, cfg deadhttp.Config) *bed {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := consumer.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(t.Context(), `INSERT INTO waybill.parked (group_name, topic, partition, "offset", key, event_id, type, tenant,
			subject, sequence, record_time, header_names, header_values, value, state, error, class, cause, cause_id, failures,
			dead_at, death_id, copied_at)
		SELECT 'billing', 'orders.events', 0, n, k::bytea, id::uuid, 'OrderCreated', 'tenant-' || k, '', 1, now(),
			'{ce_id}', ARRAY[id::bytea], 'bytes', state, 'no account 7', 'other', 'no account #', 'c0ffee00', 3,
			CASE WHEN state = 'dead' THEN now() END, CASE WHEN state = 'dead' THEN gen_random_uuid() END, now()
		FROM (VALUES (1, 'a', $1, 'dead'), (2, 'a', $2, 'waiting'), (3, 'b', $3, 'dead')) v(n, k, id, state)`, headA, nextA, headB)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	deadhttp.Register(mux, db, cfg)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return &bed{t, db, srv.URL, cfg.Key}
}

// ask sends a request, changed by change, and gives status and body.
func (b *bed) ask(method, path, body string, change ...func(*http.Request)) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if b.key != "" {
		r.Header.Set("Authorization", "Bearer "+b.key)
	}
	for _, f := range change {
		f(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(out)
}

func (b *bed) wants(status int, parts ...string) func(int, string) {
	b.t.Helper()
	return func(got int, body string) {
		b.t.Helper()
		for _, p := range parts {
			if got != status || !strings.Contains(body, p) {
				b.t.Errorf("%d %s, want %d with %q", got, body, status, p)
			}
		}
	}
}

func (b *bed) states() (out string) {
	b.t.Helper()
	err := b.db.QueryRow(b.t.Context(), `SELECT coalesce(string_agg(state, ' ' ORDER BY seq), '') FROM waybill.parked`).Scan(&out)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestDeadKeysAreListedByFilter(t *testing.T) {
	b := newBed(t, deadhttp.Config{})
	for query, want := range map[string]int{
		"": 2, "?group=billing": 2, "?group=other": 0, "?tenant=tenant-a": 1, "?tenant=tenant": 0, "?key=b": 1, "?cause=c0ffee00": 2,
		"?cause=other": 0, "?type=OrderCreated": 2, "?topic=x": 0, "?event=" + headB: 1, "?limit=1": 1,
		"?since=2020-01-01T00:00:00Z": 2, "?until=2020-01-01T00:00:00Z": 0,
	} {
		status, body := b.ask("GET", "/v1/dead-letters"+query, "")
		var got struct{ Keys []consumer.DeadKey }
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got.Keys) != want {
			t.Errorf("%q: %d %s, want %d keys", query, status, body, want)
		}
	}
	b.wants(200, `"keys":2`, `"tenants":2`, "no account #")(b.ask("GET", "/v1/dead-letters/causes", ""))
	b.wants(422, "want a time")(b.ask("GET", "/v1/dead-letters?since=yesterday", ""))
	b.wants(422, "want 1 to")(b.ask("GET", "/v1/dead-letters?limit=0", ""))
	b.wants(422, "is no id")(b.ask("GET", "/v1/dead-letters?event=x", ""))
}

func TestOneIsShownWithItsBytes(t *testing.T) {
	broken := errors.New("unknown schema")
	b := newBed(t, deadhttp.Config{Decode: func(_ context.Context, v []byte) ([]byte, error) {
		if string(v) != "bytes" {
			return nil, broken
		}
		return []byte(`{"order":"7"}`), nil
	}})
	b.wants(200, `"body":{"order":"7"}`, `"value":"Ynl0ZXM="`, `"behind":1`, `"name":"ce_id"`)(b.ask("GET", "/v1/dead-letters/events/"+headA, ""))
	b.wants(200, `"state":"waiting"`)(b.ask("GET", "/v1/dead-letters/events/"+nextA, ""))
	b.wants(404, "neither dead nor parked")(b.ask("GET", "/v1/dead-letters/events/"+headA+"?tenant=tenant-b", ""))
	if _, err := b.db.Exec(t.Context(), `UPDATE waybill.parked SET value = 'x'`); err != nil {
		t.Fatal(err)
	}
	b.wants(200, `"unreadable":"unknown schema"`)(b.ask("GET", "/v1/dead-letters/events/"+headA, ""))
}

func TestRedriveAndDropOverHTTP(t *testing.T) {
	b := newBed(t, deadhttp.Config{Key: secret})
	for body, want := range map[string]string{
		`{"group":"billing"}`: "all: true", `{"cause":"x"}`: "Which group", `{"groop":"x"}`: "groop", `{"group":"billing","event":"x"}`: "no id",
	} {
		b.wants(422, want)(b.ask("POST", "/v1/dead-letters/redrive", body))
	}
	for body, want := range map[string]string{
		`{"group":"billing","event":"` + headA + `"}`: "Why?", `{"group":"billing","reason":"r"}`: "an event or a key",
	} {
		b.wants(422, want)(b.ask("POST", "/v1/dead-letters/drop", body))
	}
	b.wants(200, `"keys":2`)(b.ask("POST", "/v1/dead-letters/redrive", `{"group":"billing","all":true,"dry_run":true}`))
	if s := b.states(); s != "dead waiting dead" {
		t.Errorf("after a dry run: %s", s)
	}
	_, body := b.ask("POST", "/v1/dead-letters/redrive", `{"group":"billing","key":"b","by":"ana","reason":"mended"}`)
	var r consumer.Redriven
	if err := json.Unmarshal([]byte(body), &r); err != nil || r.Keys != 1 || b.states() != "dead waiting redrive" {
		t.Fatalf("%s, %s", body, b.states())
	}
	b.wants(200, `"waiting":1`, `"done":false`)(b.ask("GET", "/v1/dead-letters/redrive/"+r.Run, ""))
	b.wants(404, "nothing at this")(b.ask("GET", "/v1/dead-letters/redrive/"+headA, ""))
	b.wants(200, `"events":1`)(b.ask("POST", "/v1/dead-letters/drop", `{"group":"billing","event":"`+headA+`","by":"ana","reason":"test"}`))
	if s := b.states(); s != "retrying redrive" {
		t.Errorf("after the drop: %s", s)
	}
	b.wants(200, `"action":"drop"`, `"action":"redrive"`, `"by":"ana by HTTP from 127.0.0.1:`, `"reason":"mended"`)(b.ask("GET", "/v1/dead-letters/actions?group=billing", ""))
}

func TestWithTheKeyNobodyAsksWithoutIt(t *testing.T) {
	b := newBed(t, deadhttp.Config{Key: secret})
	for _, header := range []string{"", "Bearer ", "Bearer wrong", secret, "Basic " + secret} {
		with := func(r *http.Request) { r.Header.Set("Authorization", header) }
		b.wants(401, "operator's key")(b.ask("GET", "/v1/dead-letters", "", with))
		b.wants(401, "operator's key")(b.ask("POST", "/v1/dead-letters/redrive", `{"group":"billing","all":true}`, with))
	}
	if s := b.states(); s != "dead waiting dead" {
		t.Error(s)
	}
	b.wants(200, "keys")(b.ask("GET", "/v1/dead-letters", "", func(r *http.Request) { r.Host = "waybill.example" }))
}

func TestWithoutAKeyOnlyThisMachineIsAnswered(t *testing.T) {
	b := newBed(t, deadhttp.Config{})
	for name, change := range map[string]func(*http.Request){
		"another's name": func(r *http.Request) { r.Host = "evil.example" },
		"no name":        func(r *http.Request) { r.Host = "10.0.0.1:80" },
		"a proxy":        func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.1") },
		"another proxy":  func(r *http.Request) { r.Header.Set("Forwarded", "for=10.0.0.1") },
	} {
		if status, body := b.ask("GET", "/v1/dead-letters", "", change); status != 403 || !strings.Contains(body, "WAYBILL_OPERATOR_KEY") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	b.wants(200, "keys")(b.ask("GET", "/v1/dead-letters", "", func(r *http.Request) { r.Host = "localhost:8080" }))
	// What a page of another site can have a browser send.
	form := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	b.wants(415, "JSON")(b.ask("POST", "/v1/dead-letters/redrive", `{"group":"billing","all":true}`, form))
	if s := b.states(); s != "dead waiting dead" {
		t.Error(s)
	}
}

func TestAnotherMachineIsNotAnsweredWithoutAKey(t *testing.T) {
	mux := http.NewServeMux()
	deadhttp.Register(mux, nil, deadhttp.Config{Logger: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder() // its request comes from 192.0.2.1
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/dead-letters", nil))
	if w.Code != http.StatusForbidden {
		t.Error(w.Code)
	}
}
