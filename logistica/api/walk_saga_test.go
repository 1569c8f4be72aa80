package api_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/saga/server"
)

const sagaName = "assign"

// newSagas serves the sagas to merchants and administrators.
func newSagas(t *testing.T, pool *pgxpool.Pool, directory *tenants.Directory) *httptest.Server {
	t.Helper()
	sagas, err := server.New(server.Deps{
		DB: pool, Logger: slog.New(slog.DiscardHandler),
		Authenticate: func(ctx context.Context, key string) (server.Caller, error) {
			m, err := directory.Authenticate(ctx, key)
			switch {
			case err == nil && m.Scope == tenants.Admin:
				return server.Caller{Operator: m.Name}, nil
			case err == nil && m.Scope == tenants.Merchant:
				return server.Caller{Tenant: m.ID.String()}, nil
			}
			return server.Caller{}, server.ErrKey
		},
	}, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(sagas)
	t.Cleanup(web.Close)
	return web
}

// aSaga records one of the tenant's that needs an operator.
func aSaga(t *testing.T, pool *pgxpool.Pool, tenant, key string) {
	t.Helper()
	err := pg.InTenant(t.Context(), pool, tenant, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`INSERT INTO saga.plans (name, plan) VALUES ($1, '{"name": "assign", "steps": [
			{"name": "fee", "undo": true, "within": 1000000000, "pause": 1000000000, "asks": 2}]}')`, sagaName)
		b.Queue(`INSERT INTO saga.instances (tenant, saga, key, round, id, state, step, direction, asked, since, started_at, updated_at, correlation_id)
			VALUES ($1, $2, $3, 1, gen_random_uuid(), 'needs_operator', 'fee', 'back', 2, now(), now(), now(), 'c')`, tenant, sagaName, key)
		b.Queue(`INSERT INTO saga.entries (tenant, saga, key, round, id, what, step, direction, time, seen_at)
			SELECT $1, $2, $3, 1, gen_random_uuid(), what, step, direction, now(), now()
			FROM (VALUES ('done', 'fee', ''), ('aborted', '', ''), ('gave_up', 'fee', 'back')) v(what, step, direction)`, tenant, sagaName, key)
		return tx.SendBatch(t.Context(), &b).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}
