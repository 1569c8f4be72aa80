package pg_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// Two parts of a program on one database: each reads and writes its own schema
// and the one they share, makes no table, and cannot reach the other's.
func TestARoleReachesItsSchemasAlone(t *testing.T) {
	s := pgtest.Server(t, local.Config{Roles: []string{"part_a", "part b"}})
	owner, err := pg.Open(t.Context(), s.DSN(), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	roles, err := pg.Roles(t.Context(), owner, "part_a", "part b", "nobody", "postgres")
	slices.Sort(roles)
	if err != nil || !slices.Equal(roles, []string{"part b", "part_a"}) {
		t.Fatalf("roles %q, %v", roles, err)
	}
	exec(t, owner, `create schema a; create schema b; create schema shared;
		create table a.t (n int); create table b.t (n int); create table shared.t (n serial); create table shared.secret (n int)`)
	as := func(role, schema string) *pgxpool.Pool {
		if err := pg.Grant(t.Context(), owner, role, pg.Reach{Schemas: []string{schema, "shared"}, Except: []pgx.Identifier{{"shared", "secret"}}}); err != nil {
			t.Fatal(err)
		}
		pool, err := pg.As(t.Context(), owner, role, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	a, b := as("part_a", "a"), as("part b", "b")
	exec(t, owner, `create table a.later (n int); create table shared.later (n serial)`) // after the grant
	for _, sql := range []string{
		`insert into a.t values (1)`, `update a.t set n = 2`, `delete from a.t`, `insert into a.later values (1)`,
		`insert into shared.t default values`, `insert into shared.later default values`,
	} {
		exec(t, a, sql)
	}
	for pool, refused := range map[*pgxpool.Pool][]string{
		a: {`select from b.t`, `select from shared.secret`, `create table a.mine (n int)`, `drop table a.t`, `truncate shared.t`, `create schema mine`},
		b: {`select from a.t`, `insert into a.later values (1)`, `alter table b.t add m int`},
	} {
		for _, sql := range refused {
			if _, err := pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
}
