package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// file is an order's notices while one event settles them: its row is locked
// until the transaction ends, and what changes is sent at the end.
type file struct {
	desk          *Desk
	tenant, order uuid.UUID
	version       int64    // of the last event about the order
	latest        int32    // attempt that was ever heard of
	notices       []Notice // the attempt's that is settled, and the one that stands
	batch         pgx.Batch
	told          []event.Data
}

// open locks an order's file, and makes it if need be. Attempt is the one that
// is going to be settled.
func (d *Desk) open(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, attempt int32) (*file, error) {
	f := &file{desk: d, tenant: tenant, order: order}
	var b pgx.Batch
	b.Queue(`SELECT set_config('waybill.tenant', $1, true)`, tenant.String()) // the transaction may be a stranger's
	b.Queue(`INSERT INTO dispatch.orders AS o (tenant, order_id, version, latest) VALUES ($1, $2, 0, $3)
		ON CONFLICT (tenant, order_id) DO UPDATE SET latest = greatest(o.latest, excluded.latest)
		RETURNING version, latest`, tenant, order, attempt).
		QueryRow(func(row pgx.Row) error { return row.Scan(&f.version, &f.latest) })
	// A statement of its own, after the lock: it sees what was committed while
	// the lock was waited for.
	b.Queue(selectNotice+`WHERE tenant = $1 AND order_id = $2 AND (attempt = $3 OR state = 'SENT')`, tenant, order, attempt).
		Query(func(rows pgx.Rows) (err error) { f.notices, err = pgx.CollectRows(rows, scanNotice); return err })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("open the notices of order %s: %w", order, err)
	}
	return f, nil
}

func (f *file) has(attempt int32) bool {
	for _, n := range f.notices {
		if n.Attempt == attempt {
			return true
		}
	}
	return false
}

// notify makes an attempt's notice, sent or failed, unless something is known of
// it.
func (f *file) notify(n Notice, failure string) {
	f.withdraw(func(other Notice) bool { return other.Attempt < n.Attempt }, superseded(n.Attempt))
	switch {
	case f.has(n.Attempt):
	case n.Attempt < f.latest:
		f.put(n, Barred, superseded(f.latest))
	case failure != "":
		f.put(n, Failed, failure)
		f.tell(&contracts.CourierNotificationFailed{
			OrderID: f.order, Version: f.next(), Attempt: n.Attempt, CourierID: n.Courier, FeeID: n.Fee, Reason: failure,
		})
	default:
		f.put(n, Sent, "")
		f.tell(&contracts.CourierNotified{
			OrderID: f.order, Version: f.next(), Attempt: n.Attempt, CourierID: n.Courier, FeeID: n.Fee,
		})
	}
}

func superseded(by int32) string { return fmt.Sprintf("attempt %d has begun", by) }

// end withdraws an attempt's notice, or bars it where it has not come yet. An
// order has one courier at a time, so that of an attempt before is withdrawn too.
func (f *file) end(n Notice, reason string) {
	f.withdraw(func(other Notice) bool { return other.Attempt == n.Attempt }, reason)
	f.withdraw(func(other Notice) bool { return other.Attempt < n.Attempt }, superseded(n.Attempt))
	if !f.has(n.Attempt) {
		f.put(n, Barred, reason)
	}
}

func (f *file) withdraw(which func(Notice) bool, reason string) {
	for _, n := range f.notices {
		if n.State == Sent && which(n) {
			f.batch.Queue(`UPDATE dispatch.notices SET state = 'WITHDRAWN', reason = $4, ended_at = $5
				WHERE tenant = $1 AND order_id = $2 AND attempt = $3 AND state = 'SENT'`,
				f.tenant, f.order, n.Attempt, reason, f.desk.clock())
		}
	}
}

func (f *file) put(n Notice, state State, reason string) {
	f.batch.Queue(`INSERT INTO dispatch.notices (tenant, order_id, attempt, courier_id, fee_id, state, reason, made_at)
		VALUES ($1, $2, $3, $4, nullif($5, '00000000-0000-0000-0000-000000000000'::uuid), $6, $7, $8)`,
		f.tenant, f.order, n.Attempt, n.Courier, n.Fee, string(state), reason, f.desk.clock())
}

// next is the number of the next event about the order.
func (f *file) next() int64 { f.version++; return f.version }

func (f *file) tell(e event.Data) { f.told = append(f.told, e) }

// close sends what was changed, and the events that tell of it.
func (f *file) close(ctx context.Context, tx pgx.Tx) error {
	if len(f.told) > 0 {
		f.batch.Queue(`UPDATE dispatch.orders SET version = $3 WHERE tenant = $1 AND order_id = $2`, f.tenant, f.order, f.version)
		if err := f.desk.outbox.Queue(ctx, &f.batch, f.told...); err != nil {
			return fmt.Errorf("tell of the notices of order %s: %w", f.order, err)
		}
	}
	if f.batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &f.batch).Close(); err != nil {
		return fmt.Errorf("settle the notices of order %s: %w", f.order, err)
	}
	return nil
}

// clock is now as Postgres keeps it.
func (d *Desk) clock() time.Time { return d.cfg.Now().UTC().Truncate(time.Microsecond) }
