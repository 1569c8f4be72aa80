package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/waybillhq/waybill/logistica/orders"
)

// Where the fake's orders go: from Consolação to Jardim Paulista.
var (
	pickup  = map[string]any{"street": "Rua Augusta", "number": "1200", "district": "Consolação", "lat": -23.5563, "lng": -46.6622}
	dropoff = map[string]any{"street": "Alameda Santos", "number": "900", "district": "Jardim Paulista", "lat": -23.567, "lng": -46.65}
	marina  = map[string]any{"id": "c1", "name": "Marina Souza", "vehicle": "MOTORBIKE"}
)

func (f *fake) liveRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/orders/{id}/position", f.position)
	mux.HandleFunc("POST /v1/orders/{id}/reassign", f.reassign)
	mux.HandleFunc("POST /v1/orders/{id}/delivery-code/reset", f.resetCode)
}

// searched adds to a status event, and to its order, what the search for a
// courier adds. Call with mu held.
func (f *fake) searched(order, data map[string]any) map[string]any {
	id, _ := order["id"].(string)
	switch data["to"] {
	case "CREATED":
		attempt, _ := order["attempt"].(int)
		order["attempt"], data["attempt"] = attempt+1, attempt+1
		for _, part := range []string{"courier", "fee", "pickup_eta", "delivery_eta"} {
			delete(order, part)
		}
		delete(f.fixes, id)
	case "UNASSIGNABLE":
		data["reason"] = "NO_COURIER"
	}
	if data["to"] == "UNASSIGNABLE" || orders.State(fmt.Sprint(data["to"])).Ended() {
		for _, part := range []string{"pickup_eta", "delivery_eta"} {
			delete(order, part)
		}
	}
	f.history[id] = append(f.history[id], map[string]any{"state": data["to"], "at": order["updated_at"], "actor": "SYSTEM", "reason": data["reason"]})
	return data
}

// carried gives the order its courier.
func (f *fake) carried(order map[string]any) map[string]any {
	order["courier"], order["fee"] = marina, map[string]any{"id": "f1", "amount": 150, "currency": "BRL"}
	order["pickup_eta"], order["delivery_eta"] = time.Now().Add(6*time.Minute).UTC(), time.Now().Add(17*time.Minute).UTC()
	return order
}

// locate has the order's courier be somewhere: part of the way from its pickup
// to its dropoff, at a time. It tells the streams and keeps the newest, as the
// product does. Call with mu held.
func (f *fake) locate(id string, part float64, at time.Time) {
	order := f.orders[id]
	end := func(kind, name string, other map[string]any) float64 {
		place, _ := order[kind].(map[string]any)
		if degrees, known := place[name].(float64); known {
			return degrees
		}
		degrees, _ := other[name].(float64)
		return degrees
	}
	between := func(name string) float64 {
		from, to := end("pickup", name, pickup), end("dropoff", name, dropoff)
		return from + (to-from)*part
	}
	fix := map[string]any{"lat": between("lat"), "lng": between("lng"), "heading_deg": 134, "fix_time": at.UTC()}
	if last, _ := f.fixes[id]["fix_time"].(time.Time); at.After(last) {
		f.fixes[id] = fix
	}
	for stream, token := range f.streams {
		data := map[string]any{"lat": fix["lat"], "lng": fix["lng"], "heading_deg": fix["heading_deg"], "fix_time": fix["fix_time"]}
		if token == "" {
			data["order_id"], data["courier_id"] = id, "c1"
		} else if token != order["tracking_token"] {
			continue
		}
		event, _ := json.Marshal(map[string]any{"type": "logistica.couriers.CourierLocationUpdated", "time": at.UTC(), "data": data})
		stream <- fmt.Sprintf("data: %s\n\n", event)
	}
}

// public adds what the tracking link shows of who carries the order.
func (f *fake) public(order, view map[string]any) map[string]any {
	view["pickup"] = map[string]any{"lat": -23.556, "lng": -46.662}
	view["dropoff"] = map[string]any{"lat": -23.567, "lng": -46.65}
	state, _ := order["state"].(string)
	if orders.State(state).Ended() {
		return view
	}
	view["delivery_code"] = order["delivery_code"]
	if order["courier"] == nil {
		return view
	}
	view["courier"] = map[string]any{"first_name": "Marina", "vehicle": "MOTORBIKE"}
	view["pickup_eta"], view["eta"] = order["pickup_eta"], order["delivery_eta"]
	id, _ := order["id"].(string)
	if fix, known := f.fixes[id]; known {
		view["position"] = fix
	}
	return view
}

func (f *fake) position(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fix, known := f.fixes[r.PathValue("id")]
	if !known {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, 200, fix)
}

func (f *fake) resetCode(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	order := f.orders[r.PathValue("id")]
	order["delivery_code_tries"] = 0
	answer(w, 200, order)
}

// reassign lets the courier go: the order goes back as soon as its events say so.
func (f *fake) reassign(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	order := f.orders[r.PathValue("id")]
	if f.refuseMoves {
		problem(w, 409, map[string]any{"title": "Conflict", "detail": "the courier has the goods", "from": order["state"], "allowed": allowed["PICKED_UP"]})
		return
	}
	answer(w, 202, order)
	if f.letGo != nil {
		f.letGo()
		return
	}
	f.move(order, "CREATED")
}
