package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// readyWithin bounds each question of /readyz.
const readyWithin = 2 * time.Second

func (s *service) operatorRoutes() {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	s.mux.HandleFunc("GET /readyz", s.ready)
	if s.Metrics != nil {
		s.mux.Handle("GET /metrics", s.Metrics)
	}
}

// ready asks everything at once. Why something is not ready goes to the log:
// the answer is public.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	failed := make([]error, len(s.Ready))
	var asking sync.WaitGroup
	for i, c := range s.Ready {
		asking.Go(func() { failed[i] = c.Ask(ctx) })
	}
	asking.Wait()
	status, checks := http.StatusOK, map[string]string{}
	for i, c := range s.Ready {
		checks[c.Name] = "ok"
		if failed[i] != nil {
			status, checks[c.Name] = http.StatusServiceUnavailable, "failed"
			s.Logger.WarnContext(ctx, "not ready", "check", c.Name, "error", failed[i])
		}
	}
	writeJSON(w, status, map[string]any{"status": readyWord(status), "checks": checks})
}

func readyWord(status int) string {
	if status == http.StatusOK {
		return "ready"
	}
	return "not ready"
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client left: nobody to tell
}
