package couriers

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/pg"
)

// Courier is a courier as the platform shows one: without a phone number.
type Courier struct {
	ID      uuid.UUID
	Name    string
	Vehicle Vehicle
	State   State
	Version int64 // counts the events of their duty; 0 before the first
}

const selectCourier = `SELECT id, name, vehicle_type, state, version FROM couriers.couriers `

func scanCourier(row pgx.Row, c *Courier) error {
	return row.Scan(&c.ID, &c.Name, &c.Vehicle, &c.State, &c.Version)
}

// Get reads a courier; [ErrNotFound] if there is none of that id. It asks for no
// tenant: whoever calls it knows the id from what is theirs.
func (m *Module) Get(ctx context.Context, courier uuid.UUID) (c Courier, err error) {
	err = m.asCourier(ctx, courier, func(tx pgx.Tx) error {
		return scanCourier(tx.QueryRow(ctx, selectCourier+`WHERE id = $1`, courier), &c)
	})
	return c, notFound(err, "read courier %s", courier)
}

func notFound(err error, doing string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	}
	return fmt.Errorf(doing+": %w", append(args, err)...)
}

// maxLinked bounds a list of couriers.
const maxLinked = 1000

// Linked lists the couriers who ride for tenant, by name, 1000 at most.
func (m *Module) Linked(ctx context.Context, tenant uuid.UUID) ([]Courier, error) {
	return m.list(ctx, tenant, `ORDER BY name, id LIMIT $2`, maxLinked)
}

// Among are those of ids who ride for tenant, in no order.
func (m *Module) Among(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) ([]Courier, error) {
	return m.list(ctx, tenant, `AND id = ANY($2)`, ids)
}

func (m *Module) list(ctx context.Context, tenant uuid.UUID, which string, arg any) (list []Courier, err error) {
	err = pg.InTenant(ctx, m.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectCourier+`WHERE id IN (
			SELECT courier FROM couriers.courier_tenant WHERE tenant = $1) `+which, tenant, arg)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Courier, err error) {
			return c, scanCourier(row, &c)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list couriers: %w", err)
	}
	return list, nil
}

// SetStatus takes a courier's word on their duty, and publishes
// CourierStatusChanged; the state they are in already changes nothing. expected
// is the version they must be at, any if nil. Who becomes AVAILABLE may be
// RESERVED when it returns, for an order that waited.
//
// It refuses with *[ForbiddenStatus], *[VersionConflict] or [ErrNotFound].
func (m *Module) SetStatus(ctx context.Context, courier uuid.UUID, to State, expected *int64) (c Courier, err error) {
	err = m.asCourier(ctx, courier, func(tx pgx.Tx) error {
		if c, err = lockCourier(ctx, tx, courier); err != nil {
			return err
		}
		if expected != nil && *expected != c.Version {
			return &VersionConflict{Expected: *expected, Current: c.Version, State: c.State}
		}
		if c.State == to {
			return nil
		}
		if err := guard(c.State, to); err != nil {
			return err
		}
		var b pgx.Batch
		if err := m.turn(ctx, &b, &c, to, "", uuid.Nil); err != nil {
			return err
		}
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return fmt.Errorf("move courier %s to %s: %w", courier, to, err)
		}
		if to != Available {
			return nil
		}
		return m.serve(ctx, tx, &c, uuid.Nil)
	})
	return c, err
}

// lockCourier reads a courier so that nobody else moves them before tx ends. The
// transaction acts for that courier.
func lockCourier(ctx context.Context, tx pgx.Tx, courier uuid.UUID) (c Courier, err error) {
	err = scanCourier(tx.QueryRow(ctx, selectCourier+`WHERE id = $1 FOR NO KEY UPDATE`, courier), &c)
	return c, notFound(err, "lock courier %s", courier)
}

// turn queues a change of duty with its event. The transaction holds the
// courier's row and acts for them when the batch is sent.
func (m *Module) turn(ctx context.Context, b *pgx.Batch, c *Courier, to State, reason string, order uuid.UUID) error {
	e := contracts.CourierStatusChanged{
		CourierID: c.ID, Version: c.Version + 1, From: contracts.CourierState(c.State), To: contracts.CourierState(to),
	}
	if reason != "" {
		e.Reason = &reason
	}
	if order != uuid.Nil {
		e.OrderID = &order
	}
	c.State, c.Version = to, c.Version+1
	b.Queue(`UPDATE couriers.couriers SET state = $2, version = $3, updated_at = $4 WHERE id = $1`,
		c.ID, string(to), c.Version, m.clock())
	return m.outbox.Queue(ofPlatform(ctx), b, e)
}
