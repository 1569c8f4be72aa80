package tenants

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pg.Migrate(t.Context(), pool, Migration()); err != nil {
		t.Fatal(err)
	}
	return pool
}

func issue(t *testing.T, d *Directory, name string) (Tenant, string, uuid.UUID) {
	t.Helper()
	tenant, err := d.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	key, id, err := d.IssueKey(t.Context(), tenant.ID, Merchant)
	if err != nil {
		t.Fatal(err)
	}
	return tenant, key, id
}

func TestAKeyOpensItsOwnTenantOnly(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	for _, name := range []string{"Padaria", "Pizzaria"} {
		want, key, _ := issue(t, d, name)
		for range 2 { // from the table, then from memory
			got, err := d.Authenticate(t.Context(), key)
			if err != nil || got.ID != want.ID || got.Name != name || got.Scope != Merchant {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
}

func TestWhatIsNoKeyIsRefusedAlike(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	_, key, _ := issue(t, d, "Padaria")
	for _, bad := range []string{
		"", "wb_", key[:len(key)-1], key + "0", strings.ToUpper(key), " " + key, key + "\x00", "wb_a'b_" + key[12:],
		NewKey(event.NewID()), strings.Repeat("x", 1<<20), key[:len(key)-1] + "é",
	} {
		if _, err := d.Authenticate(t.Context(), bad); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
}

func TestRevokedKeyEndsHereAtOnceAndElsewhereInTime(t *testing.T) {
	t.Parallel()
	pool, now := newPool(t), time.Now()
	clock := func() time.Time { return now }
	here, elsewhere := New(pool, Config{Now: clock}), New(pool, Config{Now: clock})
	tenant, key, id := issue(t, here, "Padaria")
	for _, d := range []*Directory{here, elsewhere} {
		if _, err := d.Authenticate(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := here.RevokeKey(t.Context(), tenant.ID, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := here.Authenticate(t.Context(), key); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("here: %v", err)
	}
	now = now.Add(29 * time.Second)
	if _, err := elsewhere.Authenticate(t.Context(), key); err != nil {
		t.Errorf("elsewhere, remembered: %v", err)
	}
	now = now.Add(time.Second)
	if _, err := elsewhere.Authenticate(t.Context(), key); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("elsewhere, after 30 s: %v", err)
	}
}

func TestATenantCannotRevokeAnothersKey(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	_, key, id := issue(t, d, "Padaria")
	other, _, _ := issue(t, d, "Pizzaria")
	if err := d.RevokeKey(t.Context(), other.ID, id); err == nil {
		t.Error("revoked")
	}
	if _, err := New(d.pool, Config{}).Authenticate(t.Context(), key); err != nil {
		t.Error(err)
	}
}

func TestSeedIsIdempotent(t *testing.T) {
	t.Parallel()
	d, id := New(newPool(t), Config{}), event.NewID()
	key := NewKey(id)
	for _, name := range []string{"Demo", "Demo", "Demonstração"} {
		if err := d.Seed(t.Context(), id, name, key); err != nil {
			t.Fatal(err)
		}
	}
	if err := New(d.pool, Config{}).Seed(t.Context(), id, "Demonstração", NewKey(id)); err != nil {
		t.Fatalf("a second key: %v", err)
	}
	got, err := New(d.pool, Config{}).Authenticate(t.Context(), key)
	if err != nil || got.ID != id || got.Name != "Demonstração" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := d.Seed(t.Context(), event.NewID(), "Thief", key); err == nil {
		t.Error("another tenant took the key")
	}
	if err := d.Seed(t.Context(), id, "Demo", "hunter2"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a weak key: %v", err)
	}
}

func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	tenant, key, _ := issue(t, d, "Padaria")
	var found bool
	err := pg.InTenant(t.Context(), d.pool, tenant.ID.String(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT bool_or(k::text LIKE '%' || $1 || '%' OR position($1::bytea IN k.key_hash) > 0)
			FROM tenants.api_keys k`, key[strings.LastIndex(key, "_")+1:]).Scan(&found)
	})
	if err != nil || found {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestRowLevelSecurityHoldsBeneathEveryStatement(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	ours, _, _ := issue(t, d, "Padaria")
	issue(t, d, "Pizzaria")
	for _, table := range []string{"tenants.tenants", "tenants.api_keys"} {
		var mine, nobodys int
		count := func(n *int) func(pgx.Tx) error {
			return func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(n) }
		}
		if err := pg.InTenant(t.Context(), d.pool, ours.ID.String(), count(&mine)); err != nil {
			t.Fatal(err)
		}
		if err := pgx.BeginFunc(t.Context(), d.pool, count(&nobodys)); err != nil {
			t.Fatal(err)
		}
		if mine != 1 || nobodys != 0 {
			t.Errorf("%s shows %d to its tenant, %d to nobody", table, mine, nobodys)
		}
	}
}

func TestCacheStaysWithinItsBound(t *testing.T) {
	now := time.Now()
	c := newCache[int, int](100, time.Minute, func() time.Time { return now })
	for i := range 10_000 {
		c.put(i, i)
		if v, ok := c.get(i); !ok || v != i {
			t.Fatalf("%d is gone at once", i)
		}
	}
	if n := len(c.entries); n > 100 {
		t.Errorf("%d entries", n)
	}
	now = now.Add(time.Minute)
	if _, ok := c.get(9_999); ok {
		t.Error("stale value")
	}
}

func TestKeysHaveOneForm(t *testing.T) {
	for range 2000 {
		if key := NewKey(event.NewID()); !keyForm.MatchString(key) {
			t.Fatal(key)
		}
	}
}

// Guesses must not keep the database from those who have a key.
func TestUnknownKeysAreLookedUpAFewAtATime(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pg.Migrate(t.Context(), pool, Migration()); err != nil {
		t.Fatal(err)
	}
	d := New(pool, Config{MaxLookups: 1})
	tenant, err := d.Create(t.Context(), "Padaria")
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := d.IssueKey(t.Context(), tenant.ID, Merchant)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Authenticate(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	d.lookups <- struct{}{} // a lookup that takes its time
	if _, err := d.Authenticate(t.Context(), NewKey(tenant.ID)); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	if got, err := d.Authenticate(t.Context(), key); err != nil || got.ID != tenant.ID {
		t.Errorf("a key that is remembered: %v", err)
	}
	<-d.lookups
	for range 3 {
		if _, err := d.Authenticate(t.Context(), NewKey(tenant.ID)); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("afterwards: %v", err)
		}
	}
}
