package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/pg"
)

// Problem is the body of every error, after RFC 9457.
type Problem struct {
	huma.ErrorModel
	RequestID string `json:"request_id,omitempty" doc:"Quote it when you ask about this answer."`

	From    string   `json:"from,omitempty" doc:"State the order is in."`
	To      string   `json:"to,omitempty" doc:"State that was asked for."`
	Allowed []string `json:"allowed,omitempty" doc:"States the order may go to."`
	Version int64    `json:"version,omitempty" doc:"Version the order is at."`

	TriesLeft *int `json:"tries_left,omitempty" doc:"How many more delivery codes are taken."`

	final      bool          // From is an end: Allowed is written though it is empty
	retryAfter time.Duration // of an overload, a second if zero
}

// Types of problems that say more than their status does. They point into the
// documentation page.
const (
	typeForbidden  = "/docs#forbidden-transition"
	typeConflict   = "/docs#version-conflict"
	typeInvalid    = "/docs#invalid-request"
	typeKeyReused  = "/docs#idempotency-key-reused"
	typeOverloaded = "/docs#overloaded"
	typeOutboxFull = "/docs#outbox-full"
	typeCode       = "/docs#delivery-code"
)

// MarshalJSON writes an empty allowed where an order's story has ended: left
// out, it would look as if nobody had said.
func (p *Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	if !p.final {
		return json.Marshal((*plain)(p))
	}
	return json.Marshal(struct {
		*plain
		Allowed []string `json:"allowed"`
	}{(*plain)(p), []string{}})
}

func problem(status int, detail string) *Problem {
	return &Problem{ErrorModel: huma.ErrorModel{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail,
	}}
}

func typed(status int, kind, title, detail string) *Problem {
	p := problem(status, detail)
	p.Type, p.Title = kind, title
	return p
}

func (p *Problem) from(ctx context.Context) *Problem {
	p.RequestID = event.Correlation(ctx)
	return p
}

// toProblem makes huma's own errors look like all others. It drops the values
// they echo, which may be a whole body.
func toProblem(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := problem(m.Status, m.Detail)
	if len(m.Errors) > 0 && m.Status < http.StatusInternalServerError {
		p.Type = typeInvalid
		for _, e := range m.Errors {
			if e != nil {
				p.Errors = append(p.Errors, &huma.ErrorDetail{Message: plainly(e.Message), Location: e.Location})
			}
		}
	}
	return p.from(ctx.Context()), nil
}

// plainly keeps the decoder's talk of Go types from the client.
func plainly(message string) string {
	if strings.Contains(message, " Go ") {
		return "holds a value that does not fit its field"
	}
	return message
}

// write answers with p outside huma.
func (p *Problem) write(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(p.from(r.Context()))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="waybill"`)
	}
	if after := p.after(); after != "" {
		h.Set("Retry-After", after)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client left: nobody to tell
}

// after is the Retry-After of an answer that asks for patience, in seconds, and
// empty for the others.
func (p *Problem) after() string {
	if p.Status != http.StatusServiceUnavailable && p.Status != http.StatusTooManyRequests {
		return ""
	}
	return strconv.Itoa(max(1, int(math.Ceil(p.retryAfter.Seconds()))))
}

// problemOf turns an error of the product into what the client may know of it.
// What the client cannot mend is logged here, and nowhere else.
func (s *service) problemOf(ctx context.Context, err error) *Problem {
	var already *Problem
	var forbidden *orders.ForbiddenTransition
	var conflict *orders.VersionConflict
	var invalid *orders.Invalid
	var full *outbox.OverloadError
	var code *orders.CodeRefused
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &forbidden):
		return forbiddenProblem(forbidden)
	case errors.As(err, &conflict):
		p := typed(http.StatusConflict, typeConflict, "Version conflict", conflict.Error())
		p.From, p.Version = string(conflict.State), conflict.Current
		p.allow(conflict.Allowed)
		return p
	case errors.As(err, &invalid):
		return invalidProblem(invalid)
	case errors.As(err, &code):
		return codeProblem(code)
	case errors.Is(err, orders.ErrNotFound), errors.Is(err, tenants.ErrNotFound):
		return problem(http.StatusNotFound, "There is nothing here that you may see.")
	case errors.Is(err, orders.ErrKeyReused):
		return typed(http.StatusUnprocessableEntity, typeKeyReused, "Idempotency key reused",
			"This Idempotency-Key was used before with another request. Use a new key for a new order.")
	case errors.As(err, &full): // the gate has told it; once, not for each request
		p := typed(http.StatusTooManyRequests, typeOutboxFull, "Outbox full",
			"Events are not carried away as fast as they come. Nothing was done; send the same request again later, with the same Idempotency-Key.")
		p.retryAfter = full.RetryAfter
		return p
	case errors.Is(err, tenants.ErrBusy), errors.Is(err, analytics.ErrUnavailable):
		return overloaded()
	case errors.Is(err, tenants.ErrUnauthenticated):
		return problem(http.StatusUnauthorized, "The API key is unknown or revoked.")
	}
	if p := keyProblem(err); p != nil {
		return p
	}
	if p := courierProblem(err); p != nil {
		return p
	}
	return s.ownFault(ctx, err)
}

// ownFault is a failure the client did not cause.
func (s *service) ownFault(ctx context.Context, err error) *Problem {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return problem(statusClientGone, "The request was given up.")
	}
	s.Logger.ErrorContext(ctx, "request failed",
		"request_id", event.Correlation(ctx), "error", err)
	if pg.Infrastructure(err) || pg.Conflict(err) || errors.Is(err, context.DeadlineExceeded) {
		return typed(http.StatusServiceUnavailable, typeOverloaded, "Not available just now",
			"The request was not carried out. Try again with the same Idempotency-Key.")
	}
	return problem(http.StatusInternalServerError, "Something failed here. The request id finds it in the log.")
}

// statusClientGone is nginx's, for logs and metrics: nobody reads the answer.
const statusClientGone = 499

func forbiddenProblem(f *orders.ForbiddenTransition) *Problem {
	p := typed(http.StatusConflict, typeForbidden, "Forbidden transition", f.Error())
	p.From, p.To = string(f.From), string(f.To)
	p.allow(f.Allowed)
	return p
}

// codeProblem: a code that may be given again is the request's fault, one that is
// not taken any more a state that somebody else must change first.
func codeProblem(c *orders.CodeRefused) *Problem {
	if c.Left == 0 {
		p := typed(http.StatusConflict, typeCode, "Delivery code locked", sentence(c.Error()))
		p.TriesLeft = &c.Left
		return p
	}
	p := typed(http.StatusUnprocessableEntity, typeCode, "Delivery code refused", sentence(c.Error()))
	p.TriesLeft = &c.Left
	p.Errors = []*huma.ErrorDetail{{Message: "Must be the customer's code", Location: "body.code"}}
	return p
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

func (p *Problem) allow(states []orders.State) {
	p.Allowed, p.final = names(states), len(states) == 0
}

func invalidProblem(invalid *orders.Invalid) *Problem {
	p := typed(http.StatusUnprocessableEntity, typeInvalid, "Invalid request", "Some fields are not acceptable.")
	for _, f := range invalid.Fields {
		p.Errors = append(p.Errors, &huma.ErrorDetail{Message: strings.ToUpper(f.Message[:1]) + f.Message[1:], Location: "body." + f.Field})
	}
	return p
}

func names(states []orders.State) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return out
}
