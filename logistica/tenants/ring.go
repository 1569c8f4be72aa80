package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// Key is what is known of an API key: never the key itself.
type Key struct {
	ID        uuid.UUID
	Tenant    uuid.UUID
	Scope     Scope
	Courier   uuid.UUID // nil unless the scope is Courier
	Hint      string    // the last four of the key's visible middle; empty for one of before hints
	CreatedAt time.Time
	EndsAt    *time.Time // of a key that was rotated
	RevokedAt *time.Time
}

// Issued is a key with its secret, which is shown this once.
type Issued struct {
	Key
	Secret string
}

// Errors of keys; compare with errors.Is.
var (
	ErrNoKey       = errors.New("no such key")
	ErrTooManyKeys = fmt.Errorf("at most %d keys are good at the same time: revoke one first", maxLive)
	ErrScope       = errors.New("a merchant has keys of scope merchant, the platform those of scope admin, and of scope courier with a courier")
	ErrGrace       = fmt.Errorf("a grace period is between 0 s and %d days", maxGrace/(24*time.Hour))
)

// Bounds of a tenant's keys, of the platform's for each scope and courier.
const (
	maxLive  = 50  // good at the same time
	maxEnded = 100 // of those that ended, the newest are kept to be looked at
	maxGrace = 30 * 24 * time.Hour
)

// DefaultGrace is for how long a rotated key usually goes on.
const DefaultGrace = 24 * time.Hour

// Issue makes a key. [Platform] has keys of scope [Admin], and of [Courier]
// with a courier; every other tenant has those of [Merchant]. It is [ErrNotFound]
// where there is no such tenant.
func (d *Directory) Issue(ctx context.Context, tenant uuid.UUID, scope Scope, courier uuid.UUID) (Issued, error) {
	if (tenant == Platform) == (scope == Merchant) || (scope == Courier) != (courier != uuid.Nil) {
		return Issued{}, fmt.Errorf("issue key: %w", ErrScope)
	}
	if tenant == Platform {
		if err := d.put(ctx, Platform, platformName); err != nil {
			return Issued{}, fmt.Errorf("issue key: %w", err)
		}
	}
	var out Issued
	err := pg.InTenant(ctx, d.pool, tenant.String(), func(tx pgx.Tx) (err error) {
		if err := makeRoom(ctx, tx, tenant, scope, courier); err != nil {
			return err
		}
		out, err = add(ctx, tx, tenant, scope, courier)
		return err
	})
	if err != nil {
		return Issued{}, fmt.Errorf("issue key: %w", err)
	}
	return out, nil
}

// makeRoom refuses one key too many, and forgets the oldest of those that
// ended. It lets one at a time through for each tenant: the bounds hold.
func makeRoom(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, scope Scope, courier uuid.UUID) error {
	var there uuid.UUID
	err := tx.QueryRow(ctx, `SELECT id FROM tenants.tenants WHERE id = $1 FOR UPDATE`, tenant).Scan(&there)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	const theirs = `tenant = $1 AND scope = $2 AND courier IS NOT DISTINCT FROM nullif($3::uuid, $4::uuid)`
	const ended = `(revoked_at IS NOT NULL OR ends_at <= now())`
	var live int
	err = tx.QueryRow(ctx, `SELECT count(*) FROM tenants.api_keys WHERE NOT coalesce(`+ended+`, false) AND `+theirs,
		tenant, string(scope), courier, uuid.Nil).Scan(&live)
	if err != nil {
		return err
	}
	if live >= maxLive {
		return ErrTooManyKeys
	}
	_, err = tx.Exec(ctx, `DELETE FROM tenants.api_keys WHERE tenant = $1 AND id IN (
		SELECT id FROM tenants.api_keys WHERE `+ended+` AND `+theirs+` ORDER BY id DESC OFFSET $5)`,
		tenant, string(scope), courier, uuid.Nil, maxEnded)
	return err
}

// Rotate makes a key in the place of one of tenant's, which goes on for grace,
// or for what is left to it if that is less. A key that has ended is ErrNoKey.
func (d *Directory) Rotate(ctx context.Context, tenant, id uuid.UUID, grace time.Duration) (Issued, error) {
	if grace < 0 || grace > maxGrace {
		return Issued{}, fmt.Errorf("rotate key: %w", ErrGrace)
	}
	var out Issued
	var hash []byte
	err := pg.InTenant(ctx, d.pool, tenant.String(), func(tx pgx.Tx) error {
		var scope Scope
		var courier uuid.UUID
		err := tx.QueryRow(ctx, `UPDATE tenants.api_keys SET ends_at = least(ends_at, now() + $3::interval)
			WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL AND coalesce(ends_at > now(), true)
			RETURNING key_hash, scope, coalesce(courier, $4::uuid)`, tenant, id, grace, uuid.Nil).Scan(&hash, &scope, &courier)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoKey
		}
		if err != nil {
			return err
		}
		if err := makeRoom(ctx, tx, tenant, scope, courier); err != nil {
			return err
		}
		out, err = add(ctx, tx, tenant, scope, courier)
		return err
	})
	if err != nil {
		return Issued{}, fmt.Errorf("rotate key %s: %w", id, err)
	}
	d.keys.drop([32]byte(hash)) // what is remembered knows no end
	d.changed()
	return out, nil
}
