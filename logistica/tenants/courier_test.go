package tenants

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

func TestACouriersKeyNamesTheCourier(t *testing.T) {
	t.Parallel()
	d, ana, rui := New(newPool(t), Config{}), event.NewID(), event.NewID()
	key, id, err := d.IssueCourierKey(t.Context(), ana)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []*Directory{New(d.pool, Config{}), d, d} { // from the table, then from memory
		got, err := who.Authenticate(t.Context(), key)
		if err != nil || got.Courier != ana || got.Scope != Courier || got.ID != Platform {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if other, _, err := d.IssueCourierKey(t.Context(), rui); err != nil || other == key {
		t.Errorf("a second courier: %v", err)
	}
	if err := d.RevokeKey(t.Context(), Platform, id); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Authenticate(t.Context(), key); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("revoked: %v", err)
	}
}

func TestSeedingACourierTwiceIsOneKey(t *testing.T) {
	t.Parallel()
	d, ana := New(newPool(t), Config{}), event.NewID()
	key := NewKey(ana)
	for range 3 {
		if err := New(d.pool, Config{}).SeedCourier(t.Context(), ana, key); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.SeedCourier(t.Context(), event.NewID(), key); err == nil {
		t.Error("another courier took the key")
	}
	_, merchants, _ := issue(t, d, "Padaria")
	if err := d.SeedCourier(t.Context(), ana, merchants); err == nil {
		t.Error("a courier took a merchant's key")
	}
}

func TestACouriersScopeAndNameComeTogether(t *testing.T) {
	t.Parallel()
	d := New(newPool(t), Config{})
	tenant, _, _ := issue(t, d, "Padaria")
	if _, _, err := d.IssueKey(t.Context(), tenant.ID, Courier); err == nil {
		t.Error("a courier's key that names nobody")
	}
	for scope, courier := range map[Scope]*uuid.UUID{Courier: nil, Merchant: &tenant.ID, Admin: &tenant.ID} {
		err := pg.InTenant(t.Context(), d.pool, tenant.ID.String(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO tenants.api_keys (id, tenant, key_hash, scope, courier)
				VALUES ($1, $2, $3, $4, $5)`, event.NewID(), tenant.ID, make([]byte, 32), string(scope), courier)
			return err
		})
		if err == nil {
			t.Errorf("%s with courier %v was kept", scope, courier)
		}
	}
}
