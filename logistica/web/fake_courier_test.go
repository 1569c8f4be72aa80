package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/orders"
)

const (
	courierKey = "wb_courier_0123456789abcdef"
	doorCode   = "4821"
	jobID      = "01940000-0000-7000-8000-00000000c0de"
)

// fakeCourier speaks the API as a courier's page needs it.
type fakeCourier struct {
	mu        sync.Mutex
	state     string
	version   int64
	job       map[string]any // nil: none
	tries     int
	streams   map[chan string]bool
	positions []map[string]any
	taken     []string // steps that were taken, in order
	asked     int      // how often the jobs were read

	away        bool // nobody answers
	loseAnswers int  // take this many steps and answer none of them
	heldBack    bool // a declined order stays listed
}

func serveCourier(mux *http.ServeMux) *fakeCourier {
	f := &fakeCourier{state: "OFFLINE", streams: map[chan string]bool{}}
	mux.HandleFunc("GET /v1/courier", f.known(f.self))
	mux.HandleFunc("POST /v1/courier/status", f.known(f.status))
	mux.HandleFunc("GET /v1/courier/jobs", f.known(f.jobs))
	mux.HandleFunc("POST /v1/courier/jobs/{id}/decline", f.known(f.decline))
	mux.HandleFunc("POST /v1/courier/jobs/{id}/moves", f.known(f.move))
	mux.HandleFunc("POST /v1/courier/positions", f.known(f.track))
	mux.HandleFunc("GET /v1/courier/events", f.stream)
	return f
}

func (f *fakeCourier) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// known answers who has the courier's key, with the lock held.
func (f *fakeCourier) known(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch r.Header.Get("Authorization") {
		case "Bearer " + courierKey:
		case "Bearer " + testKey:
			problem(w, 403, map[string]any{"detail": "This takes an API key of scope courier; yours is of scope merchant."})
			return
		default:
			problem(w, 401, map[string]any{"detail": "The API key is unknown or revoked."})
			return
		}
		if f.away {
			panic(http.ErrAbortHandler)
		}
		h(w, r)
	}
}

func (f *fakeCourier) me() map[string]any {
	may := []string{}
	for _, s := range couriers.Allowed(couriers.State(f.state)) {
		may = append(may, string(s))
	}
	return map[string]any{"id": "c1", "name": "Davi Moreira", "vehicle": "MOTORBIKE", "state": f.state, "allowed": may, "version": f.version}
}

func (f *fakeCourier) self(w http.ResponseWriter, _ *http.Request) { answer(w, 200, f.me()) }

func (f *fakeCourier) status(w http.ResponseWriter, r *http.Request) {
	var body struct {
		State    string `json:"state"`
		Expected int64  `json:"expected_version"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	may, _ := f.me()["allowed"].([]string)
	switch {
	case body.Expected != f.version:
		problem(w, 409, map[string]any{"type": "/docs#version-conflict", "from": f.state})
	case !slices.Contains(may, body.State):
		problem(w, 409, map[string]any{"type": "/docs#forbidden-transition", "from": f.state, "allowed": may})
	default:
		f.state, f.version = body.State, f.version+1
		answer(w, 200, f.me())
	}
}

func (f *fakeCourier) jobs(w http.ResponseWriter, _ *http.Request) {
	f.asked++
	list := []any{}
	if f.job != nil {
		list = append(list, f.job)
	}
	answer(w, 200, map[string]any{"jobs": list})
}

// offer gives the courier an order and calls them, as the saga does.
func (f *fakeCourier) offer(state string) {
	f.with(func() {
		f.state, f.version = "BUSY", f.version+1
		now := time.Now()
		f.job = map[string]any{
			"id": jobID, "attempt": 1, "version": 4, "items": []any{
				map[string]any{"name": "Pão de queijo recheado", "quantity": 6}, map[string]any{"name": "Café coado", "quantity": 2},
			},
			"pickup": map[string]any{"street": "Rua dos Pinheiros", "number": "498", "cep": "05422-001", "district": "Pinheiros", "lat": -23.5663, "lng": -46.6845},
			"dropoff": map[string]any{
				"street": "Rua Harmonia", "number": "271", "cep": "05435-000", "district": "Vila Madalena", "lat": -23.5536, "lng": -46.6905, "reference": "Portão azul, interfone 12",
			},
			"customer":   map[string]any{"name": "Marina Tavares", "phone": "+55 11 91234-5678"},
			"pickup_eta": now.Add(9 * time.Minute), "delivery_eta": now.Add(31 * time.Minute), "assigned_at": now,
		}
		f.stand(state)
	})
	f.call()
}

// stand puts the order into a state. Call with mu held.
func (f *fakeCourier) stand(state string) {
	job := maps.Clone(f.job)
	may := []string{}
	for _, s := range orders.Allowed(orders.State(state), orders.Courier) {
		may = append(may, string(s))
	}
	version, _ := job["version"].(int)
	job["state"], job["allowed"], job["version"] = state, may, version+1
	if f.job = job; state == "DELIVERED" || state == "CANCELLED" {
		f.job, f.state, f.version = nil, "AVAILABLE", f.version+1
	}
}

func (f *fakeCourier) decline(w http.ResponseWriter, r *http.Request) {
	if f.job == nil || r.PathValue("id") != f.job["id"] {
		problem(w, 404, map[string]any{"title": "Not Found"})
		return
	}
	f.taken = append(f.taken, "DECLINE")
	if f.state, f.version = "AVAILABLE", f.version+1; !f.heldBack {
		f.job = nil
	}
	f.done(w, 204, nil)
}

func (f *fakeCourier) move(w http.ResponseWriter, r *http.Request) {
	var body struct {
		To, Code string
		Expected int `json:"expected_version"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	if f.job == nil || r.PathValue("id") != f.job["id"] {
		problem(w, 404, map[string]any{"title": "Not Found"})
		return
	}
	may, _ := f.job["allowed"].([]string)
	switch {
	case body.Expected != f.job["version"]:
		problem(w, 409, map[string]any{"type": "/docs#version-conflict", "from": f.job["state"]})
	case !slices.Contains(may, body.To):
		problem(w, 409, map[string]any{"type": "/docs#forbidden-transition", "from": f.job["state"], "allowed": may})
	case body.To == "DELIVERED" && f.tries >= orders.MaxCodeTries:
		problem(w, 409, map[string]any{"type": "/docs#delivery-code", "tries_left": 0})
	case body.To == "DELIVERED" && body.Code != doorCode:
		status := 422
		if f.tries++; f.tries == orders.MaxCodeTries {
			status = 409
		}
		problem(w, status, map[string]any{"type": "/docs#delivery-code", "tries_left": orders.MaxCodeTries - f.tries})
	default:
		f.taken = append(f.taken, body.To)
		f.stand(body.To)
		f.done(w, 200, map[string]any{"id": jobID, "state": body.To})
	}
}

// done answers a step that was taken, unless the answer is to be lost.
func (f *fakeCourier) done(w http.ResponseWriter, status int, v any) {
	if f.loseAnswers > 0 {
		f.loseAnswers--
		panic(http.ErrAbortHandler)
	}
	if status == 204 {
		w.WriteHeader(status)
		return
	}
	answer(w, status, v)
}

func (f *fakeCourier) track(w http.ResponseWriter, r *http.Request) {
	var body struct{ Positions []map[string]any }
	_ = json.NewDecoder(r.Body).Decode(&body)
	f.positions = append(f.positions, body.Positions...)
	answer(w, 202, map[string]any{"accepted": len(body.Positions)})
}

// call wakes the courier's page up; it says nothing more.
func (f *fakeCourier) call() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.streams {
		select {
		case s <- `{"type":"logistica.couriers.CourierStatusChanged"}`:
		default: // one call is enough
		}
	}
}

func (f *fakeCourier) stream(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+courierKey {
		problem(w, 403, map[string]any{})
		return
	}
	calls := make(chan string, 1)
	f.mu.Lock()
	away := f.away
	f.streams[calls] = true
	f.mu.Unlock()
	defer f.with(func() { delete(f.streams, calls) })
	if away {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	_, _ = fmt.Fprint(w, "event: ready\ndata: {}\n\n")
	_ = flush.Flush()
	for n := 1; ; n++ {
		select {
		case data := <-calls:
			_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", n, data)
			_ = flush.Flush()
		case <-r.Context().Done():
			return
		}
	}
}
