package orders_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/pg"
)

var ownTables = []string{"orders.orders", "orders.transitions", "orders.idempotency_keys", "orders.assignments"}

// rows counts what a transaction sees that forgot to name its tenant.
func rows(t *testing.T, tx pgx.Tx, table string) (n int) {
	t.Helper()
	if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRowLevelSecurityHoldsBeneathEveryStatement(t *testing.T) {
	t.Parallel()
	b, ours, theirs := newBed(t, orders.Config{}), event.NewID(), event.NewID()
	for _, tenant := range []uuid.UUID{ours, theirs, theirs} {
		o, _, err := b.Create(t.Context(), tenant, newOrder(), uuid.NewString())
		if err != nil {
			t.Fatal(err)
		}
		b.give(t, tenant, newSaga(o.ID, 1).reserved)
	}
	requirePlainRole(t, b)
	for _, table := range ownTables {
		seen := map[string]int{}
		err := pg.InTenant(t.Context(), b.pool, ours.String(), func(tx pgx.Tx) error {
			seen["ours"] = rows(t, tx, table)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			seen["nobody's"] = rows(t, tx, table)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if seen["ours"] != 1 || seen["nobody's"] != 0 {
			t.Errorf("%s shows %v", table, seen)
		}
	}
}

// requirePlainRole: row-level security does not bind a superuser.
func requirePlainRole(t *testing.T, b bed) {
	t.Helper()
	var super, bypass bool
	err := b.pool.QueryRow(t.Context(), `SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&super, &bypass)
	if err != nil || super || bypass {
		t.Fatalf("superuser %v, bypasses row-level security %v, %v", super, bypass, err)
	}
}

func TestATenantCannotWriteForAnother(t *testing.T) {
	t.Parallel()
	b, ours, theirs := newBed(t, orders.Config{}), event.NewID(), event.NewID()
	o := b.create(t, theirs)
	for name, sql := range map[string]string{
		"update": `UPDATE orders.orders SET state = 'CANCELLED'`,
		"delete": `DELETE FROM orders.orders`,
	} {
		err := pg.InTenant(t.Context(), b.pool, ours.String(), func(tx pgx.Tx) error {
			ct, err := tx.Exec(t.Context(), sql)
			if err == nil && ct.RowsAffected() != 0 {
				t.Errorf("%s changed %d rows of another tenant", name, ct.RowsAffected())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := pg.InTenant(t.Context(), b.pool, ours.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO orders.transitions (tenant, order_id, version, from_state, to_state, actor, at)
			VALUES ($1, $2, 2, 'CREATED', 'CANCELLED', 'SYSTEM', now())`, theirs, o.ID)
		return err
	})
	var denied *pgconn.PgError
	if !errors.As(err, &denied) || denied.Code != "42501" {
		t.Errorf("insert for another tenant: %v", err)
	}
}

func TestATrackingTokenOpensOneOrderForReading(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	b.walk(t, tenant, b.create(t, tenant).ID, orders.Assigning)
	b.walk(t, tenant, o.ID, orders.Assigning, orders.Assigned)
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.tracking_token', $1, true)`, o.TrackingToken); err != nil {
			return err
		}
		if n := rows(t, tx, "orders.orders"); n != 1 {
			t.Errorf("the token shows %d orders", n)
		}
		if n := rows(t, tx, "orders.transitions"); n != 2 {
			t.Errorf("the token shows %d transitions", n)
		}
		if n := rows(t, tx, "orders.idempotency_keys"); n != 0 {
			t.Errorf("the token shows %d keys", n)
		}
		ct, err := tx.Exec(t.Context(), `UPDATE orders.orders SET state = 'CANCELLED'`)
		if ct.RowsAffected() != 0 {
			t.Error("the token writes")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range ownTables { // the setting ends with its transaction
		if err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			if n := rows(t, tx, table); n != 0 {
				t.Errorf("%s shows %d rows afterwards", table, n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHousekeepingSeesNoYoungKey(t *testing.T) {
	t.Parallel()
	b := newBed(t, orders.Config{})
	if _, _, err := b.Create(t.Context(), event.NewID(), newOrder(), "young"); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.housekeeping', 'on', true)`); err != nil {
			return err
		}
		ct, err := tx.Exec(t.Context(), `DELETE FROM orders.idempotency_keys`)
		if ct.RowsAffected() != 0 {
			t.Errorf("deleted %d", ct.RowsAffected())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
