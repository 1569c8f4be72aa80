package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// readyWithin bounds each question of /readyz.
const readyWithin = 2 * time.Second

// Operator is what is served to whoever runs a process: whether it lives, whether
// it can work, and its metrics.
type Operator struct {
	Ready   []Check      // what /readyz asks
	Metrics http.Handler // what /metrics answers; nothing if nil
	Logger  *slog.Logger // slog.Default() if nil

	asking singleflight.Group
}

// Routes adds /healthz, /readyz and /metrics to mux.
func (o *Operator) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", o.ready)
	if o.Metrics != nil {
		mux.Handle("GET /metrics", onlyHere(o.Metrics))
	}
}

func (s *service) operatorRoutes() {
	(&Operator{Ready: s.Ready, Metrics: s.Metrics, Logger: s.Logger}).Routes(s.mux)
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
func (o *Operator) ready(w http.ResponseWriter, r *http.Request) {
	ctx := context.WithoutCancel(r.Context()) // others wait for the answer too
	got, _, _ := o.asking.Do("", func() (any, error) { return o.askReady(ctx), nil })
	now := got.(readiness)
	writeJSON(w, now.status, map[string]any{"status": readyWord(now.status), "checks": now.checks})
}

// askReady asks everything at once. Why something is not ready goes to the log:
// the answer is public.
func (o *Operator) askReady(ctx context.Context) readiness {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	failed := make([]error, len(o.Ready))
	var asking sync.WaitGroup
	for i, c := range o.Ready {
		asking.Go(func() { failed[i] = c.Ask(ctx) })
	}
	asking.Wait()
	status, checks := http.StatusOK, map[string]string{}
	for i, c := range o.Ready {
		checks[c.Name] = "ok"
		if failed[i] != nil {
			status, checks[c.Name] = http.StatusServiceUnavailable, "failed"
			o.log().WarnContext(ctx, "not ready", "check", c.Name, "error", failed[i])
		}
	}
	return readiness{status, checks}
}

func (o *Operator) log() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
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
