package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/webhook"
)

// Problem is the body of every error, after RFC 9457.
type Problem struct{ huma.ErrorModel }

func problem(status int, detail string) *Problem {
	return &Problem{huma.ErrorModel{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}}
}

func busy() *Problem {
	return problem(http.StatusServiceUnavailable, "Too many requests are at work. Nothing was done; try again.")
}

// problemOf turns an error into what the client may know of it.
func (s *server) problemOf(ctx context.Context, err error) *Problem {
	var already *Problem
	switch {
	case errors.As(err, &already):
		return already
	case errors.Is(err, webhook.ErrNotFound):
		return problem(http.StatusNotFound, "There is no such endpoint, delivery or event. List endpoints: GET "+Prefix+"/endpoints.")
	case errors.Is(err, webhook.ErrDisabled):
		return problem(http.StatusConflict, "The endpoint is disabled. Enable it first: POST "+Prefix+"/endpoints/{endpoint}/enable.")
	case errors.Is(err, webhook.ErrTooMany):
		return problem(http.StatusConflict, err.Error())
	case errors.Is(err, webhook.ErrInvalid):
		return invalid(err)
	}
	s.Logger.ErrorContext(ctx, "webhook request failed", "error", err)
	if errors.Is(err, webhook.ErrNoKey) {
		return problem(http.StatusServiceUnavailable, "Secrets cannot be kept here: whoever runs this server has to give it a key. Nothing was done.")
	}
	if pg.Infrastructure(err) || pg.Conflict(err) || errors.Is(err, context.DeadlineExceeded) {
		return busy()
	}
	return problem(http.StatusInternalServerError, "Something failed here. The log has it.")
}

// retryAfter of an answer that asks for patience, in seconds.
const retryAfter = "1"

// write answers with p outside huma.
func (p *Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="waybill"`)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client left: nobody to tell
}

// route registers an operation whose errors become problems in one place.
func route[I, O any](s *server, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = maxBody
	op.Errors = append(op.Errors, 401, 404, 422, 429, 503)
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err == nil {
			return out, nil
		}
		p := s.problemOf(ctx, err)
		if p.Status == http.StatusServiceUnavailable {
			return nil, huma.ErrorWithHeaders(p, http.Header{"Retry-After": {retryAfter}})
		}
		return nil, p
	})
}
