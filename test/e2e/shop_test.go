// Package e2e tries the whole product: the program as its own process, with its
// own Postgres and broker, and the pages in a real browser.
package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/test/proc"
)

// patience bounds every wait; what is right is there long before.
const patience = 2 * time.Minute

// walk is the usual way of an order from its creation to the customer.
var walk = []string{
	"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT",
	"PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED",
}

type place struct{ Street, Number, CEP, District string }

type order struct {
	ID       string
	State    string
	Version  int64
	Token    string `json:"tracking_token"`
	Customer struct{ Name, Phone string }
	Pickup   place
	Dropoff  place
}

// ask sends a request under key and demands a status; into takes the answer
// unless it is nil.
func ask(t *testing.T, w *proc.Waybill, key, method, path, body string, want int, into any) {
	t.Helper()
	status, answer, err := w.Request(t.Context(), method, path, body, "Authorization", "Bearer "+key)
	if err != nil {
		t.Fatal(err)
	}
	if status != want {
		t.Fatalf("%s %s: %d, want %d\n%s", method, path, status, want, answer)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, answer)
	}
}

func create(t *testing.T, w *proc.Waybill) (o order) {
	t.Helper()
	ask(t, w, w.DemoKey, http.MethodPost, "/v1/orders", proc.Order, http.StatusCreated, &o)
	return o
}

func read(t *testing.T, w *proc.Waybill, id string) (o order) {
	t.Helper()
	ask(t, w, w.DemoKey, http.MethodGet, "/v1/orders/"+id, "", http.StatusOK, &o)
	return o
}

// move takes an order on: as the merchant, and where that is the search for a
// courier, as the system.
func move(t *testing.T, w *proc.Waybill, id string, to ...string) {
	t.Helper()
	for _, state := range to {
		if slices.Contains(proc.Search, state) {
			if _, err := w.AsSystem(t.Context(), id, state); err != nil {
				t.Fatal(err)
			}
			continue
		}
		ask(t, w, w.DemoKey, http.MethodPost, "/v1/orders/"+id+"/transitions", `{"to":"`+state+`"}`, http.StatusOK, nil)
	}
}

// eventually asks until the claim holds.
func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, claim)
		}
	}
}

func counts(t *testing.T, w *proc.Waybill) map[string]int64 {
	t.Helper()
	var answer struct{ Counts map[string]int64 }
	ask(t, w, w.DemoKey, http.MethodGet, "/v1/orders/counts", "", http.StatusOK, &answer)
	return answer.Counts
}

// stored is how many orders the demonstration's merchant has in Postgres.
func stored(t *testing.T, w *proc.Waybill) (n int64) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), w.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	var me struct{ ID string }
	ask(t, w, w.DemoKey, http.MethodGet, "/v1/me", "", http.StatusOK, &me)
	// The table is row-level secured: look as that merchant.
	if _, err := db.Exec(t.Context(), `SELECT set_config($1, $2, false)`, pg.TenantSetting, me.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM orders.orders`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// logged is the distinct events in orders.events as type@sequence by order, in
// the log's order. It reads what is there now.
func logged(t *testing.T, w *proc.Waybill) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl, err := broker.Config{Brokers: []string{w.Kafka}}.Client(
		kgo.ConsumeTopics("orders.events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topics, err := broker.ListTopics(ctx, cl, "orders.events")
	if err != nil || len(topics) != 1 || topics[0].Records == nil {
		t.Fatalf("list topics: %v %v", topics, err)
	}
	events, seen := map[string][]string{}, map[string]bool{}
	for left := *topics[0].Records; left > 0; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d records of the log cannot be read", left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			env := envelope(t, r)
			if !seen[env.ID.String()] {
				seen[env.ID.String()] = true
				events[string(r.Key)] = append(events[string(r.Key)], fact(env.Type, env.Sequence))
			}
		})
	}
	return events
}

func envelope(t *testing.T, r *kgo.Record) event.Envelope {
	t.Helper()
	env, err := event.ReadHeaders(len(r.Headers), func(i int) (string, []byte) {
		return r.Headers[i].Key, r.Headers[i].Value
	}, r.Timestamp, "")
	if err != nil {
		t.Errorf("record %d@%d: %v", r.Partition, r.Offset, err)
	}
	return env
}

// fact names an event of an order shortly, as OrderCreated@1.
func fact(kind string, sequence int64) string {
	return kind[strings.LastIndexByte(kind, '.')+1:] + "@" + jsonText(sequence)
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
