package pg_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/waybillhq/waybill/pg"
)

func files(sql ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, text := range sql {
		name := "migrations/0000" + string(rune('1'+i)) + "_step.sql"
		if !strings.HasPrefix(text, "-- +goose") {
			text = "-- +goose Up\n" + text
		}
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func TestPackagesShareASchemaAndNumberTheirOwn(t *testing.T) {
	pool := newPool(t)
	a := pg.Migration{Package: "alpha", Schema: "shared", Files: files("create table shared.a (id int);", "alter table a add b int;")}
	b := pg.Migration{Package: "beta", Schema: "shared", Files: files("create table b (id int);")}
	for range 2 {
		if err := pg.Migrate(t.Context(), pool, a, b); err != nil {
			t.Fatal(err)
		}
	}
	if n := query[int](t, pool, "select count(*) from information_schema.columns where table_schema = 'shared' and table_name in ('a', 'b')"); n != 3 {
		t.Errorf("%d columns", n)
	}
	if v := query[int](t, pool, "select max(version_id) from shared.migrations_alpha"); v != 2 {
		t.Errorf("alpha is at %d", v)
	}
	if v := query[int](t, pool, "select max(version_id) from shared.migrations_beta"); v != 1 {
		t.Errorf("beta is at %d", v)
	}
}

func TestMigrationThatFailsLeavesNothingAndSaysWhere(t *testing.T) {
	pool := newPool(t)
	bad := pg.Migration{Package: "alpha", Schema: "s", Files: files("create table a (id int); select nonsense;")}
	err := pg.Migrate(t.Context(), pool, bad)
	if err == nil || !strings.Contains(err.Error(), "s.alpha") || !strings.Contains(err.Error(), "00001_step.sql") {
		t.Fatalf("got %v", err)
	}
	if query[bool](t, pool, "select to_regclass('s.a') is not null") {
		t.Error("half a migration stayed")
	}
	bad.Files = files("create table a (id int);")
	if err := pg.Migrate(t.Context(), pool, bad); err != nil {
		t.Errorf("mended: %v", err)
	}
}

func TestProcessesStartingAtOnceTakeTurns(t *testing.T) {
	pool := newPool(t)
	m := pg.Migration{Package: "alpha", Schema: "s", Files: files(
		"create table a (id int);",
		"-- +goose NO TRANSACTION\n-- +goose Up\ncreate index concurrently a_id on a (id);",
		"insert into a values (1);",
	)}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := pg.Migrate(t.Context(), pool, m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := query[int](t, pool, "select count(*) from s.a"); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

func TestMigrateWorksWithAPoolOfOne(t *testing.T) {
	pool := open(t, newPool(t).Config().ConnString()+"&pool_max_conns=1")
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := pg.Migrate(t.Context(), pool, pg.Migration{Package: "alpha", Schema: "s", Files: files("select 1;")}); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateLeavesNoLockAndNoSearchPath(t *testing.T) {
	pool := newPool(t)
	if err := pg.Migrate(t.Context(), pool, pg.Migration{Package: "alpha", Schema: "s", Files: files("select 1;")}); err != nil {
		t.Fatal(err)
	}
	if p := query[string](t, pool, "show search_path"); strings.Contains(p, "s,") {
		t.Errorf("search_path is %s", p)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := pg.Migrate(ctx, pool, pg.Migration{Package: "beta", Schema: "s", Files: files("select 1;")}); err != nil {
		t.Fatal(err)
	}
}

func TestOddNamesAreRefused(t *testing.T) {
	pool := newPool(t)
	for _, m := range []pg.Migration{
		{Package: "a;drop", Schema: "s"}, {Package: "a", Schema: `s"x`}, {Package: "", Schema: "s"}, {Package: "a", Schema: "S"},
	} {
		if err := pg.Migrate(t.Context(), pool, m); err == nil {
			t.Errorf("%q %q was accepted", m.Package, m.Schema)
		}
	}
}

func TestRoleWithoutRightsMayFindNothingToDo(t *testing.T) {
	pool := newPool(t)
	m := pg.Migration{Package: "alpha", Schema: "s", Files: files("create table a (id int);")}
	if err := pg.Migrate(t.Context(), pool, m); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "do $$ begin execute format('revoke create on database %I from %I', current_database(), current_user); end $$")
	if err := pg.Migrate(t.Context(), pool, m); err != nil {
		t.Error(err)
	}
}

func BenchmarkMigrateFivePackages(b *testing.B) {
	var all []pg.Migration
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, pg.Migration{Package: name, Schema: "s", Files: files(
			"create table "+name+"1 (id bigint primary key, t text); create index on "+name+"1 (t);",
			"create table "+name+"2 (id bigint primary key);")})
	}
	b.Run("empty", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			pool := newPool(b)
			b.StartTimer()
			if err := pg.Migrate(b.Context(), pool, all...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("nothing to do", func(b *testing.B) {
		pool := newPool(b)
		for b.Loop() {
			if err := pg.Migrate(b.Context(), pool, all...); err != nil {
				b.Fatal(err)
			}
		}
	})
}
