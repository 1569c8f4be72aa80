package couriers

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// errand is whom a position is for: the order a courier is out for and its
// merchant, or the platform alone.
type errand struct {
	tenant uuid.UUID
	order  *uuid.UUID
}

// movePosition keeps the newest by the device's own count. One that counts anew,
// as after it was set up again, is known by its later time: positions that come
// late are older than the one that is kept.
const movePosition = `INSERT INTO couriers.positions AS p (courier, seq, lat, lng, fix_time) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (courier) DO UPDATE SET seq = excluded.seq, lat = excluded.lat, lng = excluded.lng, fix_time = excluded.fix_time
	WHERE p.seq < excluded.seq OR p.fix_time < excluded.fix_time - interval '15 minutes'`

// place moves a courier and tells what they are out for, in one round trip. The
// order is read each time: one that has just ended must not go on showing its
// merchant where the courier is.
//
// The commit does not wait for the disk: a crash of the database loses positions
// that the next ones replace.
func (t *Telemetry) place(ctx context.Context, courier uuid.UUID, f Fix) (errand, error) {
	out := errand{tenant: tenants.Platform}
	var b pgx.Batch
	set(&b, forCourier, courier.String())
	set(&b, "synchronous_commit", "off")
	b.Queue(movePosition, courier, f.Seq, f.Lat, f.Lng, f.At)
	b.Queue(`SELECT tenant, order_id FROM couriers.reservations WHERE courier = $1 AND state = 'CONFIRMED'`, courier).
		QueryRow(func(row pgx.Row) error {
			var tenant, order uuid.UUID
			err := row.Scan(&tenant, &order)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			out = errand{tenant, &order}
			return err
		})
	err := t.db.SendBatch(ctx, &b).Close()
	var failed *pgconn.PgError
	if errors.As(err, &failed) && failed.ConstraintName == "positions_courier_fkey" {
		return errand{}, ErrNotFound
	}
	if err != nil {
		return errand{}, fmt.Errorf("place courier %s: %w", courier, err)
	}
	return out, nil
}
