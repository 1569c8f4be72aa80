package tenants

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// Listed is a tenant in a list of all.
type Listed struct {
	ID        uuid.UUID
	Name      string
	CreatedAt time.Time
}

// List is at most limit tenants, the newest first, those made before the one
// named; from the newest on if that is nil. [Platform] is no merchant and not
// among them.
func (d *Directory) List(ctx context.Context, before uuid.UUID, limit int) (list []Listed, err error) {
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('waybill.directory', 'all', true)`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT id, name, created_at FROM tenants.tenants
			WHERE id <> $1 AND ($2::uuid = $3::uuid OR id < $2) ORDER BY id DESC LIMIT $4`, Platform, before, uuid.Nil, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Listed])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return list, nil
}

// Keys is at most limit keys of tenant, the newest first, those made before the
// one named; from the newest on if that is nil. It is [ErrNotFound] where there
// is no such tenant.
func (d *Directory) Keys(ctx context.Context, tenant, before uuid.UUID, limit int) (list []Key, err error) {
	if tenant != Platform { // which is there from its first key on
		if _, err := d.Name(ctx, tenant); err != nil {
			return nil, err
		}
	}
	err = pg.InTenant(ctx, d.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, tenant, scope, coalesce(courier, $3::uuid), hint, created_at, ends_at, revoked_at
			FROM tenants.api_keys WHERE tenant = $1 AND ($2::uuid = $3::uuid OR id < $2) ORDER BY id DESC LIMIT $4`,
			tenant, before, uuid.Nil, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list keys of tenant %s: %w", tenant, err)
	}
	return list, nil
}
