// Package deadhttp serves a group's dead letters to operators and their tools:
// list, show, redrive, drop.
//
// It promises that nobody asks without the operator's key; where there is none,
// only who asks from this machine, by its address, over no proxy. It shows all
// tenants' events: the key is an operator's, not a tenant's.
//
//	GET  /v1/dead-letters                  blocked keys
//	GET  /v1/dead-letters/causes           the same, grouped by cause
//	GET  /v1/dead-letters/actions          what was redriven and dropped, by whom
//	GET  /v1/dead-letters/events/{event}   one, with its bytes
//	POST /v1/dead-letters/redrive          has keys tried again
//	GET  /v1/dead-letters/redrive/{run}    how far that has come
//	POST /v1/dead-letters/drop             gives events up
package deadhttp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/consumer"
)

// Config is what may be set; its zero value works.
type Config struct {
	// Key is the operator's, which requests bear. Empty: only this machine is
	// answered.
	Key string
	// Decode makes JSON of a value, for people. nil: bytes alone are shown.
	Decode func(ctx context.Context, value []byte) ([]byte, error)
	Logger *slog.Logger // slog.Default() if nil
}

type service struct {
	db  *pgxpool.Pool
	cfg Config
}

// Register adds the routes to mux. It leaves bounds of time and bodies' size to
// the server it stands in, and has its own for what is asked.
func Register(mux *http.ServeMux, db *pgxpool.Pool, cfg Config) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &service{db, cfg}
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"GET /v1/dead-letters":                s.keys,
		"GET /v1/dead-letters/causes":         s.causes,
		"GET /v1/dead-letters/actions":        s.actions,
		"GET /v1/dead-letters/events/{event}": s.show,
		"POST /v1/dead-letters/redrive":       s.redrive,
		"GET /v1/dead-letters/redrive/{run}":  s.progress,
		"POST /v1/dead-letters/drop":          s.drop,
	} {
		mux.HandleFunc(pattern, s.answer(handle))
	}
}

// answer serves who may ask, and makes JSON of what handle says.
func (s *service) answer(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p := s.mayAsk(r); p != nil {
			p.write(w)
			return
		}
		out, err := handle(r)
		var p *problem
		switch {
		case errors.As(err, &p):
			p.write(w)
		case errors.Is(err, consumer.ErrNotParked), errors.Is(err, consumer.ErrNoRun):
			(&problem{http.StatusNotFound, "There is nothing at this address: it is neither dead nor parked any more, or never was."}).write(w)
		case err != nil:
			s.cfg.Logger.ErrorContext(r.Context(), "dead letters not served", "path", r.URL.Path, "error", err)
			(&problem{http.StatusInternalServerError, "Something failed here; the log says what."}).write(w)
		default:
			write(w, http.StatusOK, "application/json", out)
		}
	}
}

// problem is an error as RFC 9457 has it.
type problem struct {
	status int
	detail string
}

func (p *problem) Error() string { return p.detail }

func (p *problem) write(w http.ResponseWriter) {
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="operator"`)
	}
	write(w, p.status, "application/problem+json", map[string]any{
		"type": "about:blank", "title": http.StatusText(p.status), "status": p.status, "detail": p.detail,
	})
}

func write(w http.ResponseWriter, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client left: nobody to tell
}
