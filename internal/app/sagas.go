package app

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/saga/server"
)

// withSagas puts the sagas' addresses before the product's. A merchant reads its
// own; an administrator, all, and resumes and skips.
func (a *App) withSagas(rest http.Handler, directory *tenants.Directory) (http.Handler, error) {
	sagas, err := server.New(server.Deps{
		DB: a.engines.db, Logger: a.log,
		Authenticate: func(ctx context.Context, key string) (server.Caller, error) {
			t, err := directory.Authenticate(ctx, key)
			switch {
			case errors.Is(err, tenants.ErrUnauthenticated):
				return server.Caller{}, server.ErrKey
			case err != nil:
				return server.Caller{}, err
			case t.Scope == tenants.Admin:
				return server.Caller{Operator: t.Name}, nil
			case t.Scope == tenants.Merchant:
				return server.Caller{Tenant: t.ID.String()}, nil
			}
			return server.Caller{}, server.ErrKey
		},
	}, server.Config{})
	if err != nil {
		return nil, err
	}
	return beneath(server.Prefix, sagas, rest), nil
}

// beneath has h answer at prefix and below, and rest everywhere else.
func beneath(prefix string, h, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == prefix || strings.HasPrefix(r.URL.Path, prefix+"/") {
			h.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}
