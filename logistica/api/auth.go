package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/tenants"
)

type tenantKey struct{}

// public marks the operations that ask for no key; all others do.
var public = map[string]any{"public": true}

// takes names the scopes of the keys an operation takes. One that names none
// takes a merchant's alone: what is forgotten is shut.
func takes(scopes ...tenants.Scope) map[string]any { return map[string]any{"scopes": scopes} }

func scopesOf(op *huma.Operation) []tenants.Scope {
	if named, ok := op.Metadata["scopes"].([]tenants.Scope); ok {
		return named
	}
	return []tenants.Scope{tenants.Merchant}
}

// authenticate is huma's middleware: it lets only public operations pass
// without a key of a scope they take, and each caller's at its pace, up to its
// share. The public is many, and has no pace.
func (s *service) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	caller := thePublic
	if ctx.Operation().Metadata["public"] != true {
		acting, p := s.tenant(ctx.Context(), r, scopesOf(ctx.Operation())...)
		if p != nil {
			p.write(w, r)
			return
		}
		ctx, caller = huma.WithContext(ctx, acting), callerOf(tenantOf(acting))
		if wait := s.pace.keep(ctx.Context(), caller, tenantOf(acting).Scope == tenants.Merchant); wait > 0 {
			hasty(wait).write(w, r)
			return
		}
	}
	if !s.callers.take(caller) {
		greedy().write(w, r)
		return
	}
	defer s.callers.give(caller)
	next(ctx)
}

// work does what was asked for in its caller's turn. The body has come by then,
// and the answer goes out afterwards: clients that are slow at either hold no
// place that others wait for.
func work[I, O any](ctx context.Context, s *service, in *I, handle func(context.Context, *I) (*O, error)) (*O, error) {
	caller := thePublic
	if t, ok := ctx.Value(tenantKey{}).(tenants.Tenant); ok {
		caller = callerOf(t)
	}
	if !s.shares.take(ctx, caller) {
		return nil, greedy()
	}
	defer s.shares.give(caller)
	return handle(ctx, in)
}

// callerOf is whose share a request takes: couriers are all of one tenant, and
// each has one.
func callerOf(t tenants.Tenant) string {
	if t.Scope == tenants.Courier {
		return t.Courier.String()
	}
	return t.ID.String()
}

// tenant finds who sent r, and returns ctx acting for them. The key must be of
// one of the scopes.
func (s *service) tenant(ctx context.Context, r *http.Request, scopes ...tenants.Scope) (context.Context, *Problem) {
	key, ok := bearer(r)
	if !ok {
		return ctx, problem(http.StatusUnauthorized, fmt.Sprintf("Send an API key of scope %s as a bearer token.", either(scopes)))
	}
	t, err := s.Directory.Authenticate(ctx, key)
	if err != nil {
		return ctx, s.problemOf(ctx, err)
	}
	if !slices.Contains(scopes, t.Scope) {
		return ctx, problem(http.StatusForbidden, fmt.Sprintf("This takes an API key of scope %s; yours is of scope %s.", either(scopes), t.Scope))
	}
	return context.WithValue(event.WithTenant(ctx, t.ID.String()), tenantKey{}, t), nil
}

// bearer is the key that r brings. A browser cannot set headers of a WebSocket,
// but name protocols that it would speak: one of them is the key.
func bearer(r *http.Request) (key string, ok bool) {
	if scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key), true
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return "", false
	}
	for _, name := range strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		if key, ok := strings.CutPrefix(strings.TrimSpace(name), "bearer."); ok {
			return key, true
		}
	}
	return "", false
}

func either(scopes []tenants.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, " or ")
}

// tenantOf is who ctx acts for. It panics where nobody was authenticated, which
// would be a route without its middleware.
func tenantOf(ctx context.Context) tenants.Tenant { return ctx.Value(tenantKey{}).(tenants.Tenant) }
