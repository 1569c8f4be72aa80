package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

const platformName = "Platform"

// IssueCourierKey makes a key by which a courier is known. It is of the tenant
// [Platform], since couriers ride for several. It is returned this once.
func (d *Directory) IssueCourierKey(ctx context.Context, courier uuid.UUID) (key string, id uuid.UUID, err error) {
	k, err := d.Issue(ctx, Platform, Courier, courier)
	return k.Secret, k.ID, err
}

// SeedCourier makes sure that key is the courier's, as [Directory.Seed] does for
// a merchant. A key it does not know it adds and leaves the others.
func (d *Directory) SeedCourier(ctx context.Context, courier uuid.UUID, key string) error {
	if _, ok := hashKey(key); !ok {
		return fmt.Errorf("seed courier: %w", errKeyForm)
	}
	t, err := d.Authenticate(ctx, key)
	switch {
	case err == nil && (t.Scope != Courier || t.Courier != courier):
		return errors.New("seed courier: the key belongs to somebody else")
	case err == nil:
		return nil
	case !errors.Is(err, ErrUnauthenticated):
		return fmt.Errorf("seed courier: %w", err)
	}
	if err := d.put(ctx, Platform, platformName); err != nil {
		return fmt.Errorf("seed courier: %w", err)
	}
	if err := d.putKey(ctx, Platform, key, Courier, courier); err != nil {
		return fmt.Errorf("seed courier's key: %w", err)
	}
	return nil
}
