package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybillhq/waybill/logistica/sim/streets"
)

// peer is what a simulation talks with: it answers as the API is described to,
// and writes down what it would not have taken.
type peer struct {
	*httptest.Server
	t    *testing.T
	city *streets.City

	mu        sync.Mutex
	orders    map[string]*peerOrder
	byKey     map[string]string // idempotency key to order
	couriers  map[string]*peerCourier
	faults    []string
	intercept func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

type peerOrder struct {
	id, merchant, courier, state, token, code string
	body                                      newOrder
	refusedBy                                 []string
}

type peerCourier struct {
	state             string
	wakes             chan struct{}
	seqs              map[int64]bool
	newest            int64
	late, again, seen int
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t, city: city(t), orders: map[string]*peerOrder{}, byKey: map[string]string{}, couriers: map[string]*peerCourier{}}
	p.Server = httptest.NewServer(p.handler())
	t.Cleanup(p.Close)
	return p
}

// Merchant and Courier make peer what enrols.
func (p *peer) Merchant(_ context.Context, index int, _ string) (string, error) {
	return fmt.Sprintf("merchant-%d", index), nil
}

func (p *peer) Courier(_ context.Context, c Courier) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := fmt.Sprintf("courier-%d", c.Index)
	p.couriers[key] = &peerCourier{state: "OFFLINE", wakes: make(chan struct{}, 1), seqs: map[int64]bool{}}
	return key, nil
}

func (p *peer) fault(format string, args ...any) {
	if len(p.faults) < 20 {
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
}

func (p *peer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", p.create)
	mux.HandleFunc("GET /v1/orders/{id}", p.read)
	mux.HandleFunc("POST /v1/orders/{id}/transitions", p.transition)
	mux.HandleFunc("GET /v1/track/{token}", p.track)
	mux.HandleFunc("POST /v1/courier/status", p.status)
	mux.HandleFunc("GET /v1/courier/jobs", p.jobs)
	mux.HandleFunc("POST /v1/courier/jobs/{id}/{what}", p.act)
	mux.HandleFunc("POST /v1/courier/positions", p.positions)
	mux.HandleFunc("GET /v1/courier/events", p.events)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		f := p.intercept
		p.mu.Unlock()
		if f != nil && f(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func key(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int) {
	answer(w, status, map[string]string{"title": http.StatusText(status)})
}

func (p *peer) take(r *http.Request, into any) {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		p.fault("%s %s: %v", r.Method, r.URL.Path, err)
	}
}

func (p *peer) create(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !strings.HasPrefix(key(r), "merchant-") {
		problem(w, http.StatusUnauthorized)
		return
	}
	once := r.Header.Get("Idempotency-Key")
	o := p.orders[p.byKey[once]]
	if o == nil {
		o = &peerOrder{id: fmt.Sprintf("order-%d", len(p.orders)), merchant: key(r), state: "CREATED", code: fmt.Sprint(1000 + len(p.orders))}
		o.token = "token-of-" + o.id
		p.take(r, &o.body)
		if o.body.PromisedAt == nil || !o.body.PromisedAt.After(time.Now()) {
			p.fault("promised for %v", o.body.PromisedAt)
		}
		p.orders[o.id], p.byKey[once] = o, o.id
		p.assign()
	}
	answer(w, http.StatusCreated, map[string]string{"id": o.id, "state": o.state, "tracking_token": o.token, "currency": "BRL"})
}

// assign gives orders that wait to couriers who are free.
func (p *peer) assign() {
	for _, o := range p.orders {
		if o.state != "CREATED" {
			continue
		}
		for k, c := range p.couriers {
			if c.state == "AVAILABLE" && !slices.Contains(o.refusedBy, k) {
				o.courier, o.state, c.state = k, "ASSIGNED", "BUSY"
				wake(c.wakes)
				break
			}
		}
	}
}

func (p *peer) free(o *peerOrder) {
	if c := p.couriers[o.courier]; c != nil {
		c.state = "AVAILABLE"
		wake(c.wakes)
	}
	o.courier = ""
	p.assign()
}

func (p *peer) mine(w http.ResponseWriter, r *http.Request) *peerOrder {
	o := p.orders[r.PathValue("id")]
	if o == nil || o.merchant != key(r) && o.courier != key(r) {
		problem(w, http.StatusNotFound)
		return nil
	}
	return o
}

func (p *peer) read(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.mine(w, r); o != nil {
		answer(w, http.StatusOK, map[string]string{"id": o.id, "state": o.state, "tracking_token": o.token})
	}
}

func (p *peer) transition(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.mine(w, r)
	if o == nil {
		return
	}
	var m move
	p.take(r, &m)
	before := []string{"CREATED", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT"}
	switch {
	case m.To == "CANCELLED" && slices.Contains(before, o.state), m.To == "RETURNED" && o.state == "RETURNING":
		o.state = m.To
		p.free(o)
		answer(w, http.StatusOK, map[string]string{"id": o.id})
	case m.To == "CANCELLED":
		problem(w, http.StatusConflict)
	default:
		p.fault("merchant moves %s to %s", o.state, m.To)
		problem(w, http.StatusConflict)
	}
}

func (p *peer) track(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key(r) != "" {
		p.fault("a customer with a key")
	}
	o := p.orders[strings.TrimPrefix(r.PathValue("token"), "token-of-")]
	if o == nil {
		p.fault("no such link: %s", r.PathValue("token"))
		problem(w, http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, map[string]any{"state": o.state, "delivery_code": o.code, "timeline": []string{}})
}

func (p *peer) courier(w http.ResponseWriter, r *http.Request) *peerCourier {
	c := p.couriers[key(r)]
	if c == nil {
		problem(w, http.StatusUnauthorized)
	}
	return c
}

func (p *peer) status(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.courier(w, r)
	if c == nil {
		return
	}
	var d duty
	p.take(r, &d)
	if c.state == "BUSY" {
		problem(w, http.StatusConflict)
		return
	}
	c.state = d.State
	p.assign()
	answer(w, http.StatusOK, map[string]string{"state": d.State})
}

func (p *peer) jobs(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.courier(w, r) == nil {
		return
	}
	list := []map[string]any{}
	for _, o := range p.orders {
		if o.courier == key(r) {
			list = append(list, map[string]any{"id": o.id, "state": o.state, "pickup": o.body.Pickup, "dropoff": o.body.Dropoff})
		}
	}
	answer(w, http.StatusOK, map[string]any{"jobs": list})
}

var ahead = map[string][]string{
	"PICKUP_ONGOING": {"ARRIVED_AT_MERCHANT"}, "ARRIVED_AT_MERCHANT": {"PICKED_UP"}, "PICKED_UP": {"DELIVERY_ONGOING"},
	"DELIVERY_ONGOING": {"ARRIVED_AT_CUSTOMER"}, "ARRIVED_AT_CUSTOMER": {"DELIVERED", "FAILED"}, "FAILED": {"RETURNING"},
}

func (p *peer) act(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.mine(w, r)
	if o == nil {
		return
	}
	switch r.PathValue("what") {
	case "accept":
		if o.state != "ASSIGNED" {
			p.fault("accepts what is %s", o.state)
		}
		o.state = "PICKUP_ONGOING"
	case "decline":
		if o.state != "ASSIGNED" {
			p.fault("declines what is %s", o.state)
		}
		o.state, o.refusedBy = "CREATED", append(o.refusedBy, o.courier)
		p.free(o)
	case "moves":
		var m move
		p.take(r, &m)
		p.moveTo(o, m)
	}
	answer(w, http.StatusOK, map[string]string{"state": o.state})
}

func (p *peer) moveTo(o *peerOrder, m move) {
	switch {
	case !slices.Contains(ahead[o.state], m.To):
		p.fault("courier moves %s to %s", o.state, m.To)
	case m.To == "DELIVERED" && m.Code != o.code:
		p.fault("code %q", m.Code)
	}
	o.state = m.To
	if m.To == "DELIVERED" {
		p.free(o)
	}
}

func (p *peer) positions(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.courier(w, r)
	if c == nil {
		return
	}
	var list positions
	p.take(r, &list)
	if n := len(list.Positions); n < 1 || n > 100 {
		p.fault("%d positions", n)
	}
	for _, f := range list.Positions {
		at := streets.Point{Lat: f.Lat, Lng: f.Lng}
		if _, off := p.city.Nearest(at); off > maxNoise+0.1 {
			p.fault("%.1f m off the road", off)
		}
		c.seen++
		switch {
		case c.seqs[f.Seq]:
			c.again++
		case f.Seq < c.newest:
			c.late++
		}
		c.seqs[f.Seq], c.newest = true, max(c.newest, f.Seq)
		if time.Since(f.FixTime) < -time.Second {
			p.fault("a fix of the future")
		}
	}
	answer(w, http.StatusAccepted, map[string]int{"accepted": len(list.Positions)})
}

func (p *peer) events(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	c := p.courier(w, r)
	p.mu.Unlock()
	if c == nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	_, _ = fmt.Fprint(w, "event: ready\ndata: {}\n\n")
	for _ = flush.Flush(); ; _ = flush.Flush() {
		select {
		case <-r.Context().Done():
			return
		case <-c.wakes:
			_, _ = fmt.Fprint(w, "data: {\"type\":\"job\"}\n\n")
		}
	}
}

// totals over all couriers.
func (p *peer) pings() (seen, late, again int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.couriers {
		seen, late, again = seen+c.seen, late+c.late, again+c.again
	}
	return seen, late, again
}

func (p *peer) states() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for _, o := range p.orders {
		n[o.state]++
	}
	return n
}

func (p *peer) requireNoFault() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		p.t.Error(f)
	}
}
