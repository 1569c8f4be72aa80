package orders_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/pg"
)

// Row-level security adds conditions the planner may build on. It must not be
// led to read all orders of a tenant, which are many, to list the newest.
func TestListReadsNoMoreThanAPage(t *testing.T) {
	t.Parallel()
	b, ours := newBed(t, orders.Config{}), event.NewID()
	for _, tenant := range []uuid.UUID{ours, event.NewID(), event.NewID(), event.NewID()} {
		b.fill(t, tenant, 2000)
	}
	if _, err := b.pool.Exec(t.Context(), `ANALYZE orders.orders`); err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{
		"any state": `SELECT * FROM orders.orders WHERE tenant = $1 ORDER BY id DESC LIMIT 51`,
		"one state": `SELECT * FROM orders.orders WHERE tenant = $1 AND state = 'CREATED' ORDER BY id DESC LIMIT 51`,
		"a day":     `SELECT * FROM orders.orders WHERE tenant = $1 AND created_at < 'tomorrow' AND (created_at, id) > ('yesterday', 'ffffffff-0000-0000-0000-000000000000') ORDER BY created_at, id LIMIT 50`,
		"next page": `SELECT * FROM orders.orders WHERE tenant = $1 AND id < 'ffffffff-0000-0000-0000-000000000000' ORDER BY id DESC LIMIT 51`,
	} {
		if plan := b.plan(t, ours, sql); strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}

func (b bed) fill(t *testing.T, tenant uuid.UUID, n int) {
	t.Helper()
	err := pg.InTenant(t.Context(), b.pool, tenant.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO orders.orders
			SELECT $1, gen_random_uuid(), md5(random()::text || g), 'CREATED', 1, 's', 'n', 'c', 'd', 0, 0, '', 's', 'n', 'c', 'd', 0, 0, '',
				'', '', '[]', 0, 'BRL', NULL, now(), now()
			FROM generate_series(1, $2::int) g`, tenant, n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b bed) plan(t *testing.T, tenant uuid.UUID, sql string) (plan string) {
	t.Helper()
	err := pg.InTenant(t.Context(), b.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), "EXPLAIN (COSTS OFF) "+sql, tenant)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
