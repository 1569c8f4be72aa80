package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
	"github.com/waybillhq/waybill/webhook/server"
)

// webhookWalk is every route of the endpoints, in the order in which their owner
// calls them at the end.
var webhookWalk = []stop{
	{pattern: "GET /v1/webhooks/endpoints", shared: true},
	{pattern: "POST /v1/webhooks/endpoints", body: `{"url":"https://nova.example/hook"}`, shared: true},
	{pattern: "GET /v1/webhooks/recent", shared: true},
	{pattern: "GET /v1/webhooks/endpoints/{endpoint}/backlog"},
	{pattern: "GET /v1/webhooks/endpoints/{endpoint}"},
	{pattern: "PUT /v1/webhooks/endpoints/{endpoint}", body: `{"url":"https://outra.example/hook"}`},
	{pattern: "GET /v1/webhooks/endpoints/{endpoint}/secrets"},
	{pattern: "POST /v1/webhooks/endpoints/{endpoint}/rotate", body: `{}`},
	{pattern: "GET /v1/webhooks/endpoints/{endpoint}/deliveries"},
	{pattern: "GET /v1/webhooks/endpoints/{endpoint}/deliveries/{event}"},
	{pattern: "POST /v1/webhooks/endpoints/{endpoint}/deliveries/{event}/resend"},
	{pattern: "POST /v1/webhooks/endpoints/{endpoint}/replay", body: `{"failed":true}`},
	{pattern: "POST /v1/webhooks/endpoints/{endpoint}/ping"},
	{pattern: "GET /v1/webhooks/events/{event}"},
	{pattern: "POST /v1/webhooks/endpoints/{endpoint}/disable", body: `{}`},
	{pattern: "POST /v1/webhooks/endpoints/{endpoint}/enable"},
	{pattern: "DELETE /v1/webhooks/endpoints/{endpoint}"},
	{pattern: "GET /v1/webhooks/openapi.json", open: files},
}

// newHooks serves the endpoints to merchants, and makes one of tenant's that has
// been handed an event.
func newHooks(t *testing.T, pool *pgxpool.Pool, directory *tenants.Directory) (*httptest.Server, *webhook.Store) {
	t.Helper()
	box, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	store := webhook.NewStore(pool, box, guard.New(guard.Config{}), webhook.StoreConfig{})
	hooks, err := server.New(server.Deps{
		Store: store, Logger: slog.New(slog.DiscardHandler),
		Authenticate: func(ctx context.Context, key string) (string, error) {
			m, err := directory.Authenticate(ctx, key)
			if err != nil || m.Scope != tenants.Merchant {
				return "", server.ErrKey
			}
			return m.ID.String(), nil
		},
	}, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(hooks)
	t.Cleanup(web.Close)
	return web, store
}

// aHook makes an endpoint of tenant's, to which event is to be sent.
func aHook(t *testing.T, pool *pgxpool.Pool, s *webhook.Store, tenant, id string) (endpoint, secret string) {
	t.Helper()
	e, err := s.Create(t.Context(), tenant, webhook.Settings{URL: "https://hook.example/gancho-secreto"})
	if err != nil {
		t.Fatal(err)
	}
	ev := webhook.Event{ID: uuid.MustParse(id), Tenant: tenant, Type: "orders.created", Body: []byte(`"corpo-secreto"`)}
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return s.Fan(t.Context(), tx, ev) }); err != nil {
		t.Fatal(err)
	}
	keys, err := s.Secrets(t.Context(), tenant, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID.String(), keys[0].Key
}
