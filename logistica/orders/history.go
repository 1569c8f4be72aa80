package orders

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// maxHistory bounds what [Store.History] reads: a merchant may search for a
// courier as often as they like.
const maxHistory = 200

// Change is a moment of an order as its merchant is told it.
type Change struct {
	Moment
	Actor  Actor
	Reason string // as it was published; empty where nobody said
}

// History is how an order of tenant came to its state: the newest 200 changes,
// oldest first, without its creation. It is empty for an order that has not
// moved and for one that tenant has not.
func (s *Store) History(ctx context.Context, tenant, id uuid.UUID) (changes []Change, err error) {
	err = pg.InTenant(ctx, s.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT to_state, at, actor, coalesce(reason, '') FROM orders.transitions
			WHERE tenant = $1 AND order_id = $2 ORDER BY version DESC LIMIT $3`, tenant, id, maxHistory)
		if err != nil {
			return err
		}
		changes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Change, err error) {
			err = row.Scan(&c.State, &c.At, &c.Actor, &c.Reason)
			c.At = c.At.UTC()
			return c, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read history of order %s: %w", id, err)
	}
	slices.Reverse(changes)
	return changes, nil
}
