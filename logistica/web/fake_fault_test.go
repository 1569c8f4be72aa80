package web

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/waybillhq/waybill/logistica/faults"
)

// fakeFaults speaks the API as the panel of faults needs it.
type fakeFaults struct {
	mu     sync.Mutex
	set    map[string]map[string]any
	refuse bool
}

func serveFaults(mux *http.ServeMux) *fakeFaults {
	f := &fakeFaults{set: map[string]map[string]any{}}
	mux.HandleFunc("GET /v1/faults", f.known(f.list))
	mux.HandleFunc("PUT /v1/faults/{name}", f.known(f.put))
	mux.HandleFunc("DELETE /v1/faults/{name}", f.known(func(w http.ResponseWriter, r *http.Request) {
		delete(f.set, r.PathValue("name"))
		w.WriteHeader(http.StatusNoContent)
	}))
	return f
}

func (f *fakeFaults) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeFaults) known(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+testKey {
			problem(w, 403, map[string]any{"detail": "This takes an API key of scope admin."})
			return
		}
		h(w, r)
	}
}

func (f *fakeFaults) list(w http.ResponseWriter, _ *http.Request) {
	all := []any{}
	for _, k := range faults.Known() {
		one := map[string]any{"name": k.Name, "does": k.Does, "unit": k.Unit, "max": k.Max, "value": 0}
		for field, v := range f.set[k.Name] {
			one[field] = v
		}
		all = append(all, one)
	}
	answer(w, 200, map[string]any{"faults": all})
}

func (f *fakeFaults) put(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Value float64
		For   string
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	if f.refuse {
		problem(w, 422, map[string]any{"detail": "Some fields are not acceptable.", "errors": []any{map[string]any{"message": "slow-consumer takes 0 to 5000, in milliseconds."}}})
		return
	}
	one := map[string]any{"value": body.Value, "set_at": time.Now(), "set_by": "API key of Cantina da Praça"}
	if last, err := time.ParseDuration(body.For); err == nil {
		one["until"] = time.Now().Add(last)
	}
	f.set[r.PathValue("name")] = one
	answer(w, 200, one)
}
