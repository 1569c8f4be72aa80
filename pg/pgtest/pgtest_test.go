//go:build unix

package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	a, b := pgtest.New(t), pgtest.New(t)
	if a == b {
		t.Fatalf("both tests share %s", a)
	}
	run(t, a, "create table things (id int)")
	run(t, b, "create table things (id int)")
}

func TestRoleIsTheApplicationsOwn(t *testing.T) {
	conn := connect(t, pgtest.New(t))
	var super, bypass, replication bool
	err := conn.QueryRow(t.Context(), `select rolsuper, rolbypassrls, rolreplication from pg_roles where rolname = current_user`).
		Scan(&super, &bypass, &replication)
	if err != nil || super || bypass || !replication {
		t.Fatalf("superuser %v, bypass %v, replication %v, %v", super, bypass, replication, err)
	}
}

func TestSlotsLeftBehindAreDropped(t *testing.T) {
	for range 3 {
		t.Run("", func(t *testing.T) {
			run(t, pgtest.New(t), "select pg_create_logical_replication_slot('same_name', 'pgoutput')")
		})
	}
}

func run(t *testing.T, dsn, sql string) {
	t.Helper()
	if _, err := connect(t, dsn).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func TestADatabaseLikeAnotherHasItsTablesAndIsItsOwn(t *testing.T) {
	calls := 0
	like := func() string {
		return pgtest.Like(t, "things", func(ctx context.Context, dsn string) error {
			calls++
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(ctx) }()
			_, err = conn.Exec(ctx, "create table things (id int); insert into things values (1)")
			return err
		})
	}
	a, b := like(), like()
	run(t, a, "insert into things values (2)")
	var n int
	if err := connect(t, b).QueryRow(t.Context(), "select count(*) from things").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d things in another's copy, %v", n, err)
	}
	if calls != 1 {
		t.Errorf("prepared %d times", calls)
	}
}
