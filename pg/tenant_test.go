package pg_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/pg"
)

func tenantTable(t testing.TB) *pgxpool.Pool {
	pool := newPool(t)
	exec(t, pool, `create table accounts (tenant text, name text);
		alter table accounts enable row level security;
		alter table accounts force row level security;
		create policy tenant on accounts using (tenant = current_setting('waybill.tenant', true))`)
	return pool
}

func TestTenantSeesAndWritesOnlyItsOwn(t *testing.T) {
	pool := tenantTable(t)
	for _, tenant := range []string{"acme", "globex"} {
		err := pg.InTenant(t.Context(), pool, tenant, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "insert into accounts values ($1, 'of ' || $1)", tenant)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := pg.InTenant(t.Context(), pool, "acme", func(tx pgx.Tx) error {
		var names []string
		err := tx.QueryRow(t.Context(), "select array_agg(name) from accounts").Scan(&names)
		if len(names) != 1 || names[0] != "of acme" {
			t.Errorf("acme sees %v", names)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = pg.InTenant(t.Context(), pool, "acme", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "insert into accounts values ('globex', 'forged')")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("acme wrote as globex: %v", err)
	}
}

func TestTenantEndsWithItsTransaction(t *testing.T) {
	pool := tenantTable(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	err = pg.InTenant(t.Context(), conn, "acme", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "insert into accounts values ('acme', 'x')")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := conn.QueryRow(t.Context(), "select count(*) from accounts").Scan(&n); err != nil || n != 0 {
		t.Errorf("the session's next user sees %d rows, %v", n, err)
	}
}

func TestFailedWorkIsRolledBack(t *testing.T) {
	pool := tenantTable(t)
	boom := errors.New("boom")
	err := pg.InTenant(t.Context(), pool, "acme", func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "insert into accounts values ('acme', 'x')"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	_ = pg.InTenant(t.Context(), pool, "acme", func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(t.Context(), "select count(*) from accounts").Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows, %v", n, err)
		}
		return nil
	})
}

func TestSetTenantSwitchesAnOpenTransaction(t *testing.T) {
	pool := tenantTable(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for _, tenant := range []string{"acme", "globex"} {
			if err := pg.SetTenant(t.Context(), tx, tenant); err != nil {
				return err
			}
			if _, err := tx.Exec(t.Context(), "insert into accounts values ($1, '')", tenant); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatNamesNoTenantIsRefused(t *testing.T) {
	pool := newPool(t)
	for _, tenant := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 256)} {
		err := pg.InTenant(t.Context(), pool, tenant, func(pgx.Tx) error {
			t.Errorf("ran for %q", tenant)
			return nil
		})
		if !errors.Is(err, pg.ErrTenant) {
			t.Errorf("%q: %v", tenant, err)
		}
	}
}

// No tenant's name is read as SQL, whatever the session makes of backslashes.
func TestAnyTenantArrivesAsItIs(t *testing.T) {
	pool := newPool(t)
	lax := open(t, pool.Config().ConnString()+"&standard_conforming_strings=off")
	rapid.Check(t, func(rt *rapid.T) {
		part := rapid.SampledFrom([]string{`'`, `\`, `\'`, `;`, `--`, `$1`, "\n", "é", `"`, "a", `' or true;`})
		tenant := strings.Join(rapid.SliceOfN(part, 1, 12).Draw(rt, "parts"), "") + rapid.StringN(0, 8, 32).Draw(rt, "any")
		if strings.ContainsRune(tenant, 0) || !utf8.ValidString(tenant) {
			rt.Skip()
		}
		for _, db := range []*pgxpool.Pool{pool, lax} {
			err := pg.InTenant(t.Context(), db, tenant, func(tx pgx.Tx) error {
				var got string
				err := tx.QueryRow(t.Context(), "select current_setting('waybill.tenant')").Scan(&got)
				if got != tenant {
					rt.Errorf("%q arrived as %q", tenant, got)
				}
				return err
			})
			if err != nil {
				rt.Fatal(err)
			}
		}
	})
}
