package event

import (
	"context"

	"github.com/google/uuid"
)

type contextKey int

const (
	tenantKey contextKey = iota
	chainKey
)

// chain is what an event inherits from whatever caused it.
type chain struct {
	correlation string
	causation   string
	traceParent string
}

// WithTenant says on whose behalf ctx acts.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey, tenant)
}

// Tenant is on whose behalf ctx acts, "" if nobody said.
func Tenant(ctx context.Context) string {
	t, _ := ctx.Value(tenantKey).(string)
	return t
}

// WithRequest begins a chain of causes at a request from outside. Events
// added under ctx carry id as correlation and causation.
func WithRequest(ctx context.Context, id, traceParent string) context.Context {
	return context.WithValue(ctx, chainKey, chain{id, id, traceParent})
}

// WithCause continues the chain of the event being handled: what is added
// under ctx acts for the same tenant, keeps the correlation and names e as
// its cause.
func WithCause(ctx context.Context, e *Envelope) context.Context {
	c := chain{e.CorrelationID, e.ID.String(), e.TraceParent}
	if c.correlation == "" {
		c.correlation = c.causation
	}
	return context.WithValue(WithTenant(ctx, e.Tenant), chainKey, c)
}

// Correlation is the id that ctx's chain of causes shares, "" outside one.
func Correlation(ctx context.Context) string {
	c, _ := ctx.Value(chainKey).(chain)
	return c.correlation
}

// inherit fills the attributes that come from ctx. An event with no cause
// begins a chain of its own.
func (e *Envelope) inherit(ctx context.Context, id uuid.UUID) {
	c, _ := ctx.Value(chainKey).(chain)
	e.Tenant = Tenant(ctx)
	e.CorrelationID, e.CausationID, e.TraceParent = c.correlation, c.causation, c.traceParent
	if e.CorrelationID == "" {
		e.CorrelationID = id.String()
	}
}
