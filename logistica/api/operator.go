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
		s.mux.Handle("GET /metrics", onlyHere(s.Metrics))
	}
	if s.Monitor != nil {
		for _, path := range []string{"/v1/lag", "/v1/lag/", "/v1/scale/"} {
			s.mux.Handle("GET "+path, onlyHere(s.Monitor))
		}
	}
}

// readiness is an answer of /readyz.
type readiness struct {
	status int
	checks map[string]string
}

// ready asks once for all who want to know at the same time: anybody may, and
// each question opens a connection.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx := context.WithoutCancel(r.Context()) // others wait for the answer too
	got, _, _ := s.asking.Do("", func() (any, error) { return s.askReady(ctx), nil })
	now := got.(readiness)
	writeJSON(w, now.status, map[string]any{"status": readyWord(now.status), "checks": now.checks})
}

// askReady asks everything at once. Why something is not ready goes to the log:
// the answer is public.
func (s *service) askReady(ctx context.Context) readiness {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
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
	return readiness{status, checks}
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
