package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

type tenantKey struct{}

// authenticate is huma's middleware: every operation is somebody's.
func (s *server) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		problem(http.StatusUnauthorized, "Send an API key as a bearer token.").write(w)
		return
	}
	tenant, err := s.Authenticate(ctx.Context(), strings.TrimSpace(key))
	switch {
	case errors.Is(err, ErrKey) || err == nil && tenant == "":
		problem(http.StatusUnauthorized, "The API key is unknown or revoked.").write(w)
	case err != nil:
		s.problemOf(ctx.Context(), err).write(w)
	case !s.tenants.take(tenant):
		problem(http.StatusTooManyRequests, "Too many of your requests are at work. Nothing was done; try again.").write(w)
	default:
		defer s.tenants.give(tenant)
		next(huma.WithValue(ctx, tenantKey{}, tenant))
	}
}

// tenantOf is who ctx acts for. It panics where nobody was authenticated, which
// would be a route without its middleware.
func tenantOf(ctx context.Context) string { return ctx.Value(tenantKey{}).(string) }
