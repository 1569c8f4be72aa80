package tenants

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// Authenticate finds the tenant that presents key, or [ErrUnauthenticated]. It
// is [ErrBusy] for a key that is not remembered while [Config.MaxLookups] others
// are being looked up.
//
// It looks up by hash: what the search for it takes tells nothing about the
// keys that exist, since nobody can choose a key's hash.
func (d *Directory) Authenticate(ctx context.Context, key string) (Tenant, error) {
	hash, ok := hashKey(key)
	if !ok {
		return Tenant{}, ErrUnauthenticated
	}
	if t, ok := d.keys.get(hash); ok {
		return t, nil
	}
	select {
	case d.lookups <- struct{}{}:
		defer func() { <-d.lookups }()
	default:
		return Tenant{}, ErrBusy
	}
	mark := d.keys.mark() // a key that is revoked while it is looked up is not remembered
	t, left, err := d.find(ctx, hash)
	if err != nil {
		return Tenant{}, err
	}
	d.keys.putFor(hash, t, left, mark)
	return t, nil
}

// find runs under the key's hash alone: row-level security shows that
// transaction one key and its tenant. left is how long the key is good yet,
// where that has an end: by the database's clock, whatever ours says.
func (d *Directory) find(ctx context.Context, hash [32]byte) (t Tenant, left time.Duration, err error) {
	var known []byte
	var seconds *float64
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('waybill.key_hash', $1, true)`, hex.EncodeToString(hash[:]))
		b.Queue(`SELECT k.key_hash, k.scope, coalesce(k.courier, $2::uuid), t.id, t.name,
				extract(epoch FROM k.ends_at - now())::float8
			FROM tenants.api_keys k JOIN tenants.tenants t ON t.id = k.tenant
			WHERE k.key_hash = $1 AND k.revoked_at IS NULL AND coalesce(k.ends_at > now(), true)`, hash[:], uuid.Nil).
			QueryRow(func(row pgx.Row) error {
				return row.Scan(&known, &t.Scope, &t.Courier, &t.ID, &t.Name, &seconds)
			})
		return tx.SendBatch(ctx, &b).Close()
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Tenant{}, 0, ErrUnauthenticated
	case err != nil:
		return Tenant{}, 0, fmt.Errorf("authenticate: %w", err)
	case subtle.ConstantTimeCompare(known, hash[:]) != 1, t.Scope == Courier && t.Courier == uuid.Nil,
		(t.ID == Platform) == (t.Scope == Merchant):
		return Tenant{}, 0, ErrUnauthenticated
	}
	t.Credential, left = hex.EncodeToString(hash[:]), d.keys.life
	if seconds != nil {
		rest := time.Duration(*seconds * float64(time.Second))
		t.Ends, left = d.keys.now().Add(rest), min(left, rest)
	}
	return t, left, nil
}

// IssueKey makes a key for tenant. It is returned this once. A courier's names a
// courier: see [Directory.IssueCourierKey].
func (d *Directory) IssueKey(ctx context.Context, tenant uuid.UUID, scope Scope) (key string, id uuid.UUID, err error) {
	k, err := d.Issue(ctx, tenant, scope, uuid.Nil)
	return k.Secret, k.ID, err
}

var errKeyForm = errors.New("an API key has the form wb_name_secret, the secret of 43 letters and digits")

// add gives tenant a fresh key, and courier if that is not nil.
func add(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, scope Scope, courier uuid.UUID) (Issued, error) {
	whose := tenant
	if courier != uuid.Nil {
		whose = courier
	}
	secret := NewKey(whose)
	k, err := keep(ctx, tx, tenant, secret, scope, courier)
	return Issued{k, secret}, err
}

// putKey keeps a key that was made elsewhere.
func (d *Directory) putKey(ctx context.Context, tenant uuid.UUID, key string, scope Scope, courier uuid.UUID) error {
	return pg.InTenant(ctx, d.pool, tenant.String(), func(tx pgx.Tx) error {
		_, err := keep(ctx, tx, tenant, key, scope, courier)
		return err
	})
}

// keep writes what is kept of a key.
func keep(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, key string, scope Scope, courier uuid.UUID) (Key, error) {
	hash, ok := hashKey(key)
	if !ok {
		return Key{}, errKeyForm
	}
	k := Key{ID: event.NewID(), Tenant: tenant, Scope: scope, Courier: courier, Hint: hintOf(key)}
	err := tx.QueryRow(ctx, `INSERT INTO tenants.api_keys (id, tenant, key_hash, scope, courier, hint)
		VALUES ($1, $2, $3, $4, nullif($5::uuid, $6::uuid), $7) RETURNING created_at`,
		k.ID, tenant, hash[:], string(scope), courier, uuid.Nil, k.Hint).Scan(&k.CreatedAt)
	return k, err
}

// RevokeKey ends a key of tenant; see the package's limits for when. Revoking
// one twice is no error.
func (d *Directory) RevokeKey(ctx context.Context, tenant, id uuid.UUID) error {
	var hash []byte
	err := pg.InTenant(ctx, d.pool, tenant.String(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `UPDATE tenants.api_keys SET revoked_at = coalesce(revoked_at, now())
			WHERE tenant = $1 AND id = $2 RETURNING key_hash`, tenant, id).Scan(&hash)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("revoke key %s: %w", id, ErrNoKey)
	}
	if err != nil {
		return fmt.Errorf("revoke key %s: %w", id, err)
	}
	d.keys.drop([32]byte(hash))
	d.changed()
	return nil
}

// Seed makes sure that tenant id exists under name and that key opens it, as a
// demonstration needs. A key it does not know it adds and leaves the others.
func (d *Directory) Seed(ctx context.Context, id uuid.UUID, name, key string) error {
	if _, ok := hashKey(key); !ok {
		return fmt.Errorf("seed tenant: %w", errKeyForm)
	}
	t, err := d.Authenticate(ctx, key)
	switch {
	case err == nil && t.ID != id:
		return errors.New("seed tenant: the key belongs to another tenant")
	case err == nil && t.Name == name:
		return nil
	case err != nil && !errors.Is(err, ErrUnauthenticated):
		return fmt.Errorf("seed tenant: %w", err)
	}
	if err := d.put(ctx, id, name); err != nil {
		return fmt.Errorf("seed tenant: %w", err)
	}
	if t.ID == id {
		return nil
	}
	if err := d.putKey(ctx, id, key, Merchant, uuid.Nil); err != nil {
		return fmt.Errorf("seed tenant's key: %w", err)
	}
	return nil
}
