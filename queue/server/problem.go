package server

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/queue"
)

// Problem is the body of every error, after RFC 9457.
type Problem struct {
	huma.ErrorModel
	Receipts []string `json:"receipts,omitempty" doc:"Receipts that are no longer good. For the others what was asked for is done."`

	retryAfter time.Duration
}

func problem(status int, detail string) *Problem {
	return &Problem{ErrorModel: huma.ErrorModel{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}}
}

func busy() *Problem {
	p := problem(http.StatusServiceUnavailable, "Too many requests are at work. Nothing was done; try again.")
	p.retryAfter = time.Second
	return p
}

// problemOf turns an error into what the client may know of it.
func (s *server) problemOf(ctx context.Context, err error) *Problem {
	var already *Problem
	var full *queue.FullError
	var refused *queue.ReceiptError
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &full):
		p := problem(http.StatusTooManyRequests, "The queue is full. Nothing was taken; send again later, with the same dedupe_id if you use one.")
		p.retryAfter = full.RetryAfter
		return p
	case errors.As(err, &refused):
		p := problem(http.StatusConflict, "Some leases were over: the message was done, or went to another worker. The other receipts were good and are done.")
		p.Receipts = refused.Receipts
		return p
	case errors.Is(err, queue.ErrUnknown):
		return problem(http.StatusNotFound, "There is no such queue. Create it: POST "+Prefix+".")
	case errors.Is(err, queue.ErrInUse), errors.Is(err, queue.ErrTooMany):
		return problem(http.StatusConflict, err.Error())
	case errors.Is(err, queue.ErrInvalid):
		return problem(http.StatusUnprocessableEntity, err.Error())
	}
	s.Logger.ErrorContext(ctx, "queue request failed", "error", err)
	if pg.Infrastructure(err) || pg.Conflict(err) || errors.Is(err, context.DeadlineExceeded) {
		return busy()
	}
	return problem(http.StatusInternalServerError, "Something failed here. The log has it.")
}

// after is the Retry-After of an answer that asks for patience, in seconds.
func (p *Problem) after() string {
	if p.retryAfter == 0 {
		return ""
	}
	return strconv.Itoa(max(1, int(math.Ceil(p.retryAfter.Seconds()))))
}

// write answers with p outside huma.
func (p *Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="waybill"`)
	}
	if after := p.after(); after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client left: nobody to tell
}

// route registers an operation whose errors become problems in one place.
func route[I, O any](s *server, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = maxBody
	op.Errors = append(op.Errors, 401, 404, 422, 503)
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err == nil {
			return out, nil
		}
		p := s.problemOf(ctx, err)
		if after := p.after(); after != "" {
			return nil, huma.ErrorWithHeaders(p, http.Header{"Retry-After": {after}})
		}
		return nil, p
	})
}
