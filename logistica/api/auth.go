package api

import (
	"context"
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

const scopesKey = "scopes"

// scoped marks an operation for keys of scopes; others are for a merchant's.
func scoped(scopes ...tenants.Scope) map[string]any { return map[string]any{scopesKey: scopes} }

// authenticate is huma's middleware: it lets only public operations pass
// without a tenant, and each caller's only up to its share.
func (s *service) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	caller := thePublic
	if ctx.Operation().Metadata["public"] != true {
		scopes, ok := ctx.Operation().Metadata[scopesKey].([]tenants.Scope)
		if !ok {
			scopes = []tenants.Scope{tenants.Merchant}
		}
		acting, p := s.holder(ctx.Context(), r, scopes)
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

// tenant finds the merchant who sent r, and returns ctx acting for them.
func (s *service) tenant(ctx context.Context, r *http.Request) (context.Context, *Problem) {
	return s.holder(ctx, r, []tenants.Scope{tenants.Merchant})
}

// holder finds who sent r, if their key is of one of scopes, and returns ctx
// acting for them.
func (s *service) holder(ctx context.Context, r *http.Request, scopes []tenants.Scope) (context.Context, *Problem) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ctx, problem(http.StatusUnauthorized, "Send "+aHolder[scopes[0]]+" API key as a bearer token.")
	}
	t, err := s.Directory.Authenticate(ctx, strings.TrimSpace(key))
	if err != nil {
		return ctx, s.problemOf(ctx, err)
	}
	if !slices.Contains(scopes, t.Scope) {
		return ctx, problem(http.StatusForbidden, "This key is not "+aHolder[scopes[0]]+".")
	}
	return context.WithValue(event.WithTenant(ctx, t.ID.String()), tenantKey{}, t), nil
}

// aHolder is whose the keys of a scope are, for people.
var aHolder = map[tenants.Scope]string{tenants.Merchant: "a merchant's", tenants.Courier: "a courier's", tenants.Admin: "an administrator's"}

// tenantOf is who ctx acts for. It panics where nobody was authenticated, which
// would be a route without its middleware.
func tenantOf(ctx context.Context) tenants.Tenant { return ctx.Value(tenantKey{}).(tenants.Tenant) }
