package tenants

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

func TestARotatedKeyOverlapsWithTheNewOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := New(newPool(t), Config{Now: func() time.Time { return now }})
	tenant, old, id := issue(t, d, "Padaria")
	k, err := d.Rotate(t.Context(), tenant.ID, id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if k.Scope != Merchant || k.Tenant != tenant.ID || k.Secret == old || k.ID == id || k.CreatedAt.IsZero() {
		t.Errorf("%+v", k.Key)
	}
	opens := func(key string) bool {
		_, err := d.Authenticate(t.Context(), key)
		if err != nil && !errors.Is(err, ErrUnauthenticated) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !opens(old) || !opens(k.Secret) {
		t.Error("they do not overlap")
	}
	list, err := d.Keys(t.Context(), tenant.ID, uuid.Nil, 10)
	if err != nil || len(list) != 2 || list[0].ID != k.ID || list[1].ID != id {
		t.Fatalf("%+v %v", list, err)
	}
	if list[0].State(now) != Active || list[1].State(now) != Ending || list[1].State(now.Add(2*time.Hour)) != Ended ||
		list[1].EndsAt.Before(list[0].CreatedAt.Add(50*time.Minute)) {
		t.Errorf("%+v", list)
	}
	end(t, d, tenant.ID, id)
	now = now.Add(time.Minute) // what was remembered is stale
	if opens(old) || !opens(k.Secret) {
		t.Error("the grace period does not end, or both end")
	}
	if _, err := d.Rotate(t.Context(), tenant.ID, id, time.Hour); !errors.Is(err, ErrNoKey) {
		t.Errorf("one that ended: %v", err)
	}
}

// end lets a key's grace period be over.
func end(t *testing.T, d *Directory, tenant, id uuid.UUID) {
	t.Helper()
	err := pg.InTenant(t.Context(), d.pool, tenant.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE tenants.api_keys SET ends_at = now() - interval '1 s' WHERE id = $1`, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAGraceOfNothingEndsTheKeyAtOnce(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	tenant, old, id := issue(t, d, "Padaria")
	if _, err := d.Authenticate(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Rotate(t.Context(), tenant.ID, id, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Authenticate(t.Context(), old); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("%v", err)
	}
}

// Whose answer was lost rotates again: that must not lengthen the old key's life.
func TestRotatingAgainNeverLengthensTheGrace(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	tenant, _, id := issue(t, d, "Padaria")
	var first time.Time
	for n, grace := range []time.Duration{time.Hour, 24 * time.Hour, time.Minute} {
		if _, err := d.Rotate(t.Context(), tenant.ID, id, grace); err != nil {
			t.Fatal(err)
		}
		list, err := d.Keys(t.Context(), tenant.ID, uuid.Nil, 10)
		if err != nil || len(list) != n+2 {
			t.Fatalf("%d %v", len(list), err)
		}
		switch ends := *list[n+1].EndsAt; {
		case n == 0:
			first = ends
		case n == 1 && !ends.Equal(first), n == 2 && !ends.Before(first):
			t.Errorf("after %s it ends at %s, first at %s", grace, ends, first)
		}
	}
	for _, grace := range []time.Duration{-time.Second, 31 * 24 * time.Hour} {
		if _, err := d.Rotate(t.Context(), tenant.ID, id, grace); !errors.Is(err, ErrGrace) {
			t.Errorf("%s: %v", grace, err)
		}
	}
}

func TestATenantRotatesAndListsItsOwnKeysOnly(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	_, key, id := issue(t, d, "Padaria")
	other, _, _ := issue(t, d, "Pizzaria")
	_, foreign := d.Rotate(t.Context(), other.ID, id, 0)
	if _, unknown := d.Rotate(t.Context(), other.ID, event.NewID(), 0); !errors.Is(foreign, ErrNoKey) || !errors.Is(unknown, ErrNoKey) {
		t.Errorf("%v, %v", foreign, unknown)
	}
	if list, err := d.Keys(t.Context(), other.ID, uuid.Nil, 10); err != nil || len(list) != 1 || list[0].ID == id {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := d.Authenticate(t.Context(), key); err != nil {
		t.Error(err)
	}
	if _, err := d.Keys(t.Context(), event.NewID(), uuid.Nil, 10); !errors.Is(err, ErrNotFound) {
		t.Errorf("keys of nobody: %v", err)
	}
	if _, err := d.Issue(t.Context(), event.NewID(), Merchant, uuid.Nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key for nobody: %v", err)
	}
}

func TestEachScopeHasItsOwner(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	tenant, _, _ := issue(t, d, "Padaria")
	admin, err := d.Issue(t.Context(), Platform, Admin, uuid.Nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := d.Authenticate(t.Context(), admin.Secret); err != nil || got.ID != Platform || got.Scope != Admin {
		t.Errorf("%+v %v", got, err)
	}
	ana := event.NewID()
	for _, c := range []struct {
		tenant  uuid.UUID
		scope   Scope
		courier uuid.UUID
	}{
		{tenant.ID, Admin, uuid.Nil},
		{tenant.ID, Courier, ana},
		{tenant.ID, Merchant, ana},
		{Platform, Merchant, uuid.Nil},
		{Platform, Courier, uuid.Nil},
		{Platform, Admin, ana},
		{tenant.ID, "root", uuid.Nil},
	} {
		if _, err := d.Issue(t.Context(), c.tenant, c.scope, c.courier); err == nil {
			t.Errorf("issued %+v", c)
		}
	}
	// Nor does the table keep what this code would not.
	err = pg.InTenant(t.Context(), d.pool, tenant.ID.String(), func(tx pgx.Tx) error {
		_, err := keep(t.Context(), tx, tenant.ID, NewKey(tenant.ID), Admin, uuid.Nil)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "platform_by_scope") {
		t.Errorf("a merchant's administrator: %v", err)
	}
	// A courier's keys are counted by courier, and rotate as such.
	k, err := d.Issue(t.Context(), Platform, Courier, ana)
	if err != nil {
		t.Fatal(err)
	}
	if k, err = d.Rotate(t.Context(), Platform, k.ID, time.Hour); err != nil || k.Courier != ana || k.Scope != Courier {
		t.Errorf("%+v %v", k.Key, err)
	}
}

func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	tenant, _, id := issue(t, d, "Padaria")
	for range maxEnded + 5 {
		k, err := d.Rotate(t.Context(), tenant.ID, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		id = k.ID
	}
	if list, err := d.Keys(t.Context(), tenant.ID, uuid.Nil, 1000); err != nil || len(list) != maxEnded+1 || list[0].ID != id {
		t.Errorf("%d keys, %v", len(list), err)
	}
	for n := 1; n < maxLive; n++ {
		if _, err := d.Issue(t.Context(), tenant.ID, Merchant, uuid.Nil); err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := d.Issue(t.Context(), tenant.ID, Merchant, uuid.Nil); !errors.Is(err, ErrTooManyKeys) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := d.Rotate(t.Context(), tenant.ID, id, 0); err != nil { // takes the place of another
		t.Errorf("rotate at the bound: %v", err)
	}
}

func TestTheDirectoryListsTenantsInPages(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	if _, err := d.Issue(t.Context(), Platform, Admin, uuid.Nil); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, name := range []string{"Um", "Dois", "Três"} {
		issue(t, d, name)
		want = append([]string{name}, want...)
	}
	var before uuid.UUID
	for {
		page, err := d.List(t.Context(), before, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			got, before = append(got, l.Name), l.ID
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%q, want %q", got, want)
	}
}

// A key that is looked up while it is revoked, or rotated without a grace, is
// not remembered as it was before.
func TestAKeyThatEndsWhileItIsLookedUpIsNotRemembered(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	merchant, err := d.Create(t.Context(), "Padaria")
	if err != nil {
		t.Fatal(err)
	}
	for round := range 100 {
		k, err := d.Issue(t.Context(), merchant.ID, Merchant, uuid.Nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { _, _ = d.Authenticate(t.Context(), k.Secret) }) // before, or after
		}
		all.Go(func() {
			if err := d.RevokeKey(t.Context(), merchant.ID, k.ID); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if _, err := d.Authenticate(t.Context(), k.Secret); !errors.Is(err, ErrUnauthenticated) {
			t.Fatalf("round %d: revoked, and %v", round, err)
		}
	}
}
