package tenants

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"

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
	t, err := d.find(ctx, hash)
	if err != nil {
		return Tenant{}, err
	}
	d.keys.put(hash, t)
	return t, nil
}

// find runs under the key's hash alone: row-level security shows that
// transaction one key and its tenant.
func (d *Directory) find(ctx context.Context, hash [32]byte) (t Tenant, err error) {
	var known []byte
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('waybill.key_hash', $1, true)`, hex.EncodeToString(hash[:]))
		b.Queue(`SELECT k.key_hash, k.scope, coalesce(k.courier, $2::uuid), t.id, t.name FROM tenants.api_keys k
			JOIN tenants.tenants t ON t.id = k.tenant
			WHERE k.key_hash = $1 AND k.revoked_at IS NULL`, hash[:], uuid.Nil).
			QueryRow(func(row pgx.Row) error { return row.Scan(&known, &t.Scope, &t.Courier, &t.ID, &t.Name) })
		return tx.SendBatch(ctx, &b).Close()
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Tenant{}, ErrUnauthenticated
	case err != nil:
		return Tenant{}, fmt.Errorf("authenticate: %w", err)
	case subtle.ConstantTimeCompare(known, hash[:]) != 1, t.Scope == Courier && t.Courier == uuid.Nil:
		return Tenant{}, ErrUnauthenticated
	}
	return t, nil
}

// IssueKey makes a key for tenant. It is returned this once. A courier's names a
// courier: see [Directory.IssueCourierKey].
func (d *Directory) IssueKey(ctx context.Context, tenant uuid.UUID, scope Scope) (key string, id uuid.UUID, err error) {
	if scope == Courier {
		return "", uuid.Nil, errors.New("issue key: a key of scope courier names a courier; use IssueCourierKey")
	}
	key = NewKey(tenant)
	id, err = d.putKey(ctx, tenant, key, scope, uuid.Nil)
	if err != nil {
		return "", uuid.Nil, fmt.Errorf("issue key: %w", err)
	}
	return key, id, nil
}

var errKeyForm = errors.New("an API key has the form wb_name_secret, the secret of 43 letters and digits")

// putKey keeps a key of tenant, and of courier if that is not nil.
func (d *Directory) putKey(ctx context.Context, tenant uuid.UUID, key string, scope Scope, courier uuid.UUID) (id uuid.UUID, err error) {
	hash, ok := hashKey(key)
	if !ok {
		return uuid.Nil, errKeyForm
	}
	id = event.NewID()
	err = pg.InTenant(ctx, d.pool, tenant.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO tenants.api_keys (id, tenant, key_hash, scope, courier)
			VALUES ($1, $2, $3, $4, nullif($5::uuid, $6::uuid))`, id, tenant, hash[:], string(scope), courier, uuid.Nil)
		return err
	})
	return id, err
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
		return fmt.Errorf("revoke key %s: no such key", id)
	}
	if err != nil {
		return fmt.Errorf("revoke key %s: %w", id, err)
	}
	d.keys.drop([32]byte(hash))
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
	if _, err := d.putKey(ctx, id, key, Merchant, uuid.Nil); err != nil {
		return fmt.Errorf("seed tenant's key: %w", err)
	}
	return nil
}
