package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/outbox"
)

// behindGate has orders written through an outbox that takes so many events
// before they are published.
func behindGate(t *testing.T, most int64) (m merchant, gate *outbox.Gate) {
	t.Helper()
	db := database(t)
	gate = outbox.NewGate(db, outbox.GateConfig{
		Slot: "none", MaxBacklog: most, Interval: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	b := newBedOn(t, db, func(d *api.Deps, _ *api.Config) {
		d.Orders = orders.New(db, outbox.New(contracts.All(), outbox.Config{Gate: gate}), orders.Config{})
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gate.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b.merchant(t, "Padaria"), gate
}

func TestAFullOutboxAsksForPatience(t *testing.T) {
	t.Parallel()
	m, gate := behindGate(t, 5)
	o := m.create(t)
	var refused answer
	for n := 0; refused.status != http.StatusTooManyRequests; n++ {
		refused = m.ask(t, "POST", "/v1/orders", orderBody, "Idempotency-Key", "k"+strconv.Itoa(n))
		if n > 100_000 {
			t.Fatalf("never refused; %+v", gate.State())
		}
	}
	p := refused.problem(t, http.StatusTooManyRequests)
	if p.Type != "/docs#outbox-full" || !strings.Contains(p.Detail, "Nothing was done") {
		t.Errorf("%s", refused.body)
	}
	if s, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || s < 1 || s > 60 {
		t.Errorf("Retry-After: %q", refused.header.Get("Retry-After"))
	}
	move := m.ask(t, "POST", "/v1/orders/"+o.ID.String()+"/transitions", `{"to":"CANCELLED"}`)
	if p := move.problem(t, http.StatusTooManyRequests); p.Type != "/docs#outbox-full" || move.header.Get("Retry-After") == "" {
		t.Errorf("%s", move.body)
	}
	m.ask(t, "GET", "/v1/orders/"+o.ID.String(), "").into(t, http.StatusOK, &o) // reading goes on
	if o.Version != 1 {
		t.Errorf("the refused move was carried out: %+v", o)
	}
	if _, err := m.pool.Exec(t.Context(), `INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset)
		SELECT id, now(), 0, 0 FROM waybill.outbox_events`); err != nil {
		t.Fatal(err)
	}
	late := time.After(time.Minute)
	for {
		a := m.ask(t, "POST", "/v1/orders", orderBody, "Idempotency-Key", "again")
		if a.status == http.StatusCreated {
			return
		}
		a.problem(t, http.StatusTooManyRequests)
		select {
		case <-late:
			t.Fatalf("does not recover: %+v", gate.State())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestPatienceIsDocumented(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Description string
				Headers     map[string]any
			}
		}
	}
	if err := json.Unmarshal(newBed(t).ask(t, "GET", "/openapi.json", "").body, &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/orders", "/orders", "/v1/orders/{id}/transitions"} {
		r := doc.Paths[path]["post"].Responses["429"]
		if r.Headers["Retry-After"] == nil || !strings.Contains(r.Description, "outbox-full") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := doc.Paths["/v1/orders"]["get"].Responses["503"]; r.Headers["Retry-After"] == nil {
		t.Errorf("a list: %+v", r)
	}
}
