package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/waybillhq/waybill/logistica/orders"
)

// fake speaks the API's HTTP as the pages need it, with faults that a test
// turns on. The pages are tried against the real API end to end elsewhere; here
// the order in which answers and events arrive must be the test's to choose.
type fake struct {
	mu      sync.Mutex
	orders  map[string]map[string]any
	keys    map[string]string // idempotency key -> order id
	streams map[chan string]string
	seq     int
	courier *fakeCourier
	faults  *fakeFaults
	fixes   map[string]map[string]any // order id -> the courier's newest position
	history map[string][]any          // order id -> its changes

	// Faults, read under mu.
	failCreates  int           // answer this many creations with 422
	loseAnswers  int           // create, then answer 500: the client cannot know
	answerAfter  chan struct{} // a creation's answer waits for this, its event does not
	silent       bool          // no events
	refuseMoves  bool
	letGo        func()   // what happens on a reassignment, instead of its end at once
	staleCounts  int      // answer this many requests for counts as if there were no orders
	creationKeys []string // every Idempotency-Key seen on POST /v1/orders
}

// allowed is what the API offers a merchant.
var allowed = func() map[string][]string {
	all := map[string][]string{}
	for _, from := range orders.States() {
		for _, to := range orders.Allowed(from, orders.Merchant) {
			all[string(from)] = append(all[string(from)], string(to))
		}
	}
	return all
}()

const testKey = "wb_test_0123456789abcdef"

func serve(t *testing.T) (*fake, string) {
	t.Helper()
	f := &fake{orders: map[string]map[string]any{}, keys: map[string]string{}, streams: map[chan string]string{}, fixes: map[string]map[string]any{}, history: map[string][]any{}}
	mux := http.NewServeMux()
	if err := Register(mux); err != nil {
		t.Fatal(err)
	}
	mux.HandleFunc("GET /v1/me", f.me)
	mux.HandleFunc("GET /v1/orders", f.list)
	mux.HandleFunc("GET /v1/orders/counts", f.counts)
	mux.HandleFunc("GET /v1/orders/{id}", f.get)
	mux.HandleFunc("POST /v1/orders", f.create)
	mux.HandleFunc("POST /v1/orders/{id}/transitions", f.transition)
	f.liveRoutes(mux)
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { f.stream(w, r, "") })
	mux.HandleFunc("GET /v1/track/{token}", f.track)
	mux.HandleFunc("GET /track/{token}/events", func(w http.ResponseWriter, r *http.Request) { f.stream(w, r, r.PathValue("token")) })
	mux.HandleFunc("GET /unit.html", unitPage)
	f.courier, f.faults = serveCourier(mux), serveFaults(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return f, s.URL
}

// with changes the fake's faults while requests may run.
func (f *fake) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) me(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "Bearer "+courierKey {
		problem(w, 403, map[string]any{"detail": "This takes an API key of scope merchant; yours is of scope courier."})
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+testKey {
		problem(w, 401, map[string]any{"title": "Unauthorized", "detail": "the key is not known"})
		return
	}
	answer(w, 200, map[string]any{"id": "m1", "name": "Cantina da Praça", "sets_faults": true})
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		problem(w, 400, map[string]any{"detail": err.Error()})
		return
	}
	key := r.Header.Get("Idempotency-Key")
	f.mu.Lock()
	f.creationKeys = append(f.creationKeys, key)
	if f.failCreates > 0 {
		f.failCreates--
		f.mu.Unlock()
		problem(w, 422, map[string]any{"title": "Unprocessable", "detail": "dropoff is outside the delivery area"})
		return
	}
	order := f.make(key, body)
	lost := f.loseAnswers > 0
	if lost {
		f.loseAnswers--
	}
	gate := f.answerAfter
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if lost {
		problem(w, 500, map[string]any{"title": "Internal error"})
		return
	}
	answer(w, 201, order)
}

// make creates the order once for a key. Call with mu held.
func (f *fake) make(key string, body map[string]any) map[string]any {
	if id, again := f.keys[key]; again {
		return f.orders[id]
	}
	f.seq++
	id := fmt.Sprintf("01940000-0000-7000-8000-%012d", f.seq)
	now := time.Now().UTC()
	order := map[string]any{
		"id": id, "state": "CREATED", "version": 1, "tracking_token": fmt.Sprintf("tok%d", f.seq), "tracking_url": "/track/x",
		"total": totalOf(body["items"]), "currency": "BRL", "items": body["items"], "pickup": body["pickup"], "dropoff": body["dropoff"], "customer": body["customer"],
		"attempt": 1, "delivery_code": "4071",
		"promised_at": body["promised_at"], "created_at": now, "updated_at": now, "allowed": allowed["CREATED"],
		"timeline": []any{map[string]any{"state": "CREATED", "at": now}},
	}
	f.keys[key], f.orders[id] = id, order
	f.publish("OrderCreated", order, map[string]any{
		"order_id": id, "version": 1, "items": body["items"], "total": order["total"], "currency": "BRL",
		"pickup": map[string]any{"district": "Pinheiros"}, "dropoff": map[string]any{"district": "Bela Vista"},
	})
	return order
}

func totalOf(items any) (sum float64) {
	list, _ := items.([]any)
	for _, each := range list {
		item, _ := each.(map[string]any)
		quantity, _ := item["quantity"].(float64)
		price, _ := item["unit_price"].(float64)
		sum += quantity * price
	}
	return sum
}

func (f *fake) transition(w http.ResponseWriter, r *http.Request) {
	var body struct {
		To       string `json:"to"`
		Expected int    `json:"expected_version"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		problem(w, 400, map[string]any{"detail": err.Error()})
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	order := f.orders[r.PathValue("id")]
	from, _ := order["state"].(string)
	if f.refuseMoves || !slices.Contains(allowed[from], body.To) {
		problem(w, 409, map[string]any{"title": "Conflict", "detail": "an order that is " + from + " cannot become " + body.To, "from": from, "allowed": allowed[from]})
		return
	}
	if body.Expected != 0 && body.Expected != order["version"] {
		problem(w, 409, map[string]any{"title": "Version conflict", "detail": fmt.Sprintf("order is at version %v", order["version"]), "from": from, "allowed": allowed[from]})
		return
	}
	answer(w, 200, f.move(order, body.To))
}

// assign has an order get its courier, as the saga does. Call with mu held.
func (f *fake) assign(id string) { f.move(f.move(f.orders[id], "ASSIGNING"), "ASSIGNED") }

// move changes an order's state. Call with mu held.
func (f *fake) move(before map[string]any, to string) map[string]any {
	order := maps.Clone(before)
	from, _ := order["state"].(string)
	version, _ := order["version"].(int)
	timeline, _ := order["timeline"].([]any)
	now := time.Now().UTC()
	order["state"], order["version"], order["allowed"], order["updated_at"] = to, version+1, allowed[to], now
	order["timeline"] = append(slices.Clone(timeline), map[string]any{"state": to, "at": now})
	id, _ := order["id"].(string)
	f.orders[id] = order
	f.publish("OrderStatusChanged", order, f.searched(order, map[string]any{"order_id": id, "version": version + 1, "from": from, "to": to}))
	if to == "ASSIGNED" {
		order = f.carried(maps.Clone(order))
		order["version"] = version + 2
		f.orders[id] = order
		f.publish("OrderAssigned", order, map[string]any{
			"order_id": id, "version": version + 2, "courier_id": "c1", "attempt": order["attempt"],
			"pickup_eta": order["pickup_eta"], "delivery_eta": order["delivery_eta"],
		})
	}
	return order
}

func (f *fake) publish(name string, order, data map[string]any) {
	if f.silent {
		return
	}
	f.seq++
	event, _ := json.Marshal(map[string]any{
		"id": fmt.Sprintf("e%d", f.seq), "type": "logistica.orders." + name, "time": time.Now().UTC(),
		"subject": order["id"], "sequence": order["version"], "data": data,
	})
	for stream, token := range f.streams {
		if token == "" || token == order["tracking_token"] {
			stream <- fmt.Sprintf("id: %d\ndata: %s\n\n", f.seq, event)
		}
	}
}

func (f *fake) stream(w http.ResponseWriter, r *http.Request, token string) {
	events := make(chan string, 1000)
	w.Header().Set("Content-Type", "text/event-stream")
	f.with(func() { f.streams[events] = token })
	defer f.with(func() { delete(f.streams, events) })
	flush := http.NewResponseController(w)
	_, _ = fmt.Fprint(w, "event: ready\ndata: {}\n\n")
	_ = flush.Flush()
	for {
		select {
		case e := <-events:
			_, _ = fmt.Fprint(w, e)
			_ = flush.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	order := f.orders[r.PathValue("id")]
	if r.FormValue("history") == "true" {
		order = maps.Clone(order)
		order["history"] = f.history[r.PathValue("id")]
	}
	answer(w, 200, order)
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := slices.Sorted(maps.Keys(f.orders))
	slices.Reverse(ids)
	page, next := []any{}, ""
	for _, id := range ids {
		o := f.orders[id]
		if state := r.FormValue("state"); state != "" && o["state"] != state {
			continue
		}
		if cursor := r.FormValue("cursor"); cursor != "" && id >= cursor {
			continue
		}
		if len(page) == 50 {
			last, _ := page[49].(map[string]any)
			next, _ = last["id"].(string)
			break
		}
		page = append(page, o)
	}
	answer(w, 200, map[string]any{"orders": page, "next_cursor": next})
}

func (f *fake) counts(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by := map[string]int{}
	if f.staleCounts > 0 {
		f.staleCounts--
		answer(w, 200, map[string]any{"counts": by})
		return
	}
	for _, o := range f.orders {
		state, _ := o["state"].(string)
		by[state]++
	}
	answer(w, 200, map[string]any{"counts": by})
}

func (f *fake) track(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.orders {
		if o["tracking_token"] == r.PathValue("token") {
			answer(w, 200, f.public(o, map[string]any{
				"state": o["state"], "version": o["version"], "created_at": o["created_at"], "promised_at": o["promised_at"],
				"merchant": "Cantina da Praça", "items": o["items"], "timeline": o["timeline"],
			}))
			return
		}
	}
	problem(w, 404, map[string]any{"title": "Not found"})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, v map[string]any) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// unitPage is an empty page of this origin, from which a test imports modules.
func unitPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><body>`)
}
