package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/tenants"
)

type tenantKey struct{}

// public marks the operations that ask for no key; all others do.
var public = map[string]any{"public": true}

// authenticate is huma's middleware: it lets only public operations pass
// without a tenant, and each caller's only up to its share.
func (s *service) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	caller := thePublic
	if ctx.Operation().Metadata["public"] != true {
		acting, p := s.tenant(ctx.Context(), r)
		if p != nil {
			p.write(w, r)
			return
		}
		ctx, caller = huma.WithContext(ctx, acting), tenantOf(acting).ID.String()
	}
	if !s.shares.take(caller) {
		greedy().write(w, r)
		return
	}
	defer s.shares.give(caller)
	next(ctx)
}

// tenant finds who sent r, and returns ctx acting for them.
func (s *service) tenant(ctx context.Context, r *http.Request) (context.Context, *Problem) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ctx, problem(http.StatusUnauthorized, "Send the merchant's API key as a bearer token.")
	}
	t, err := s.Directory.Authenticate(ctx, strings.TrimSpace(key))
	if err != nil {
		return ctx, s.problemOf(ctx, err)
	}
	if t.Scope != tenants.Merchant {
		return ctx, problem(http.StatusForbidden, "This key is not a merchant's.")
	}
	return context.WithValue(event.WithTenant(ctx, t.ID.String()), tenantKey{}, t), nil
}

// tenantOf is who ctx acts for. It panics where nobody was authenticated, which
// would be a route without its middleware.
func tenantOf(ctx context.Context) tenants.Tenant { return ctx.Value(tenantKey{}).(tenants.Tenant) }
