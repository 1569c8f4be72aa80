package billing

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/faults"
)

// account is an order's fees while one event settles them: its row is locked
// until the transaction ends, and what changes is sent at the end.
type account struct {
	ledger        *Ledger
	tenant, order uuid.UUID
	version       int64 // of the last event about the order
	latest        int32 // attempt that was ever heard of
	fees          []Fee // the attempt's that is settled, and the one that stands
	batch         pgx.Batch
	told          []event.Data
}

// open locks an order's account, and makes it if need be. Attempt is the one
// that is going to be settled.
func (l *Ledger) open(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, attempt int32) (*account, error) {
	a := &account{ledger: l, tenant: tenant, order: order}
	var b pgx.Batch
	b.Queue(`SELECT set_config('waybill.tenant', $1, true)`, tenant.String()) // the transaction may be a stranger's
	b.Queue(`INSERT INTO billing.orders AS o (tenant, order_id, version, latest) VALUES ($1, $2, 0, $3)
		ON CONFLICT (tenant, order_id) DO UPDATE SET latest = greatest(o.latest, excluded.latest)
		RETURNING version, latest`, tenant, order, attempt).
		QueryRow(func(row pgx.Row) error { return row.Scan(&a.version, &a.latest) })
	// A statement of its own, after the lock: it sees what was committed while
	// the lock was waited for.
	b.Queue(selectFee+`WHERE tenant = $1 AND order_id = $2 AND (attempt = $3 OR state = 'BILLED')`, tenant, order, attempt).
		Query(func(rows pgx.Rows) (err error) { a.fees, err = pgx.CollectRows(rows, scanFee); return err })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("open the account of order %s: %w", order, err)
	}
	return a, nil
}

// of is an attempt's fee, nil if it has none.
func (a *account) of(attempt int32) *Fee {
	for i := range a.fees {
		if a.fees[i].Attempt == attempt {
			return &a.fees[i]
		}
	}
	return nil
}

// bill bills an attempt's fee, unless something is known of it.
func (a *account) bill(attempt int32, courier uuid.UUID) error {
	if err := a.supersede(attempt); err != nil || a.of(attempt) != nil {
		return err
	}
	if attempt < a.latest {
		a.put(Fee{Attempt: attempt, Courier: courier, State: Barred, Reason: superseded(a.latest)})
		return nil
	}
	if a.fails(faults.BillingFailure, attempt) {
		f := Fee{Attempt: attempt, Courier: courier, State: Failed, Reason: "fault " + faults.BillingFailure + " is on"}
		a.put(f)
		a.tell(&contracts.PlatformFeeFailed{
			OrderID: a.order, Version: a.next(), Attempt: attempt, CourierID: courier, Reason: f.Reason,
		})
		return nil
	}
	f := Fee{Attempt: attempt, ID: event.NewID(), Courier: courier, Amount: a.ledger.amount, State: Billed}
	a.put(f)
	a.tell(&contracts.PlatformFeeBilled{
		OrderID: a.order, Version: a.next(), Attempt: attempt, FeeID: f.ID, CourierID: courier, Amount: f.Amount, Currency: Currency,
	})
	return nil
}

// end voids an attempt's fee, or bars it where it has not come yet.
func (a *account) end(attempt int32, courier uuid.UUID, reason string) error {
	if err := a.supersede(attempt); err != nil {
		return err
	}
	if a.of(attempt) == nil {
		a.put(Fee{Attempt: attempt, Courier: courier, State: Barred, Reason: reason})
		return nil
	}
	return a.void(attempt, reason)
}

// supersede voids the fees of attempts before one that is heard of: an order has
// one courier at a time, so their couriers were let go, though word of it has
// not come yet.
func (a *account) supersede(attempt int32) error {
	for _, f := range a.fees {
		if f.Attempt < attempt && f.State == Billed {
			if err := a.void(f.Attempt, superseded(attempt)); err != nil {
				return err
			}
		}
	}
	return nil
}

func superseded(by int32) string { return fmt.Sprintf("attempt %d has begun", by) }

// void ends a fee that stands; of any other it says and changes nothing.
func (a *account) void(attempt int32, reason string) error {
	f := a.of(attempt)
	if f == nil || f.State != Billed {
		return nil
	}
	if a.fails(faults.CompensationFailure, attempt) {
		return fmt.Errorf("void the fee of attempt %d of order %s: fault %s is on", attempt, a.order, faults.CompensationFailure)
	}
	a.batch.Queue(`UPDATE billing.fees SET state = 'VOIDED', reason = $4, voided_at = $5
		WHERE tenant = $1 AND order_id = $2 AND attempt = $3 AND state = 'BILLED'`,
		a.tenant, a.order, attempt, reason, a.ledger.clock())
	f.State = Voided
	a.tell(&contracts.PlatformFeeVoided{
		OrderID: a.order, Version: a.next(), Attempt: attempt, FeeID: f.ID, CourierID: f.Courier,
		Amount: f.Amount, Currency: f.Currency, Reason: reason,
	})
	return nil
}

func (a *account) fails(fault string, attempt int32) bool {
	return a.ledger.faults.Fails(fault, a.order.String(), strconv.FormatInt(int64(attempt), 10))
}

func (a *account) put(f Fee) {
	a.batch.Queue(`INSERT INTO billing.fees (tenant, order_id, attempt, fee_id, courier_id, amount, currency, state, reason, made_at)
		VALUES ($1, $2, $3, nullif($4, '00000000-0000-0000-0000-000000000000'::uuid), $5, $6, $7, $8, $9, $10)`,
		a.tenant, a.order, f.Attempt, f.ID, f.Courier, f.Amount, Currency, string(f.State), f.Reason, a.ledger.clock())
}

// next is the number of the next event about the order.
func (a *account) next() int64 { a.version++; return a.version }

func (a *account) tell(e event.Data) { a.told = append(a.told, e) }

// close sends what was changed, and the events that tell of it.
func (a *account) close(ctx context.Context, tx pgx.Tx) error {
	if len(a.told) > 0 {
		a.batch.Queue(`UPDATE billing.orders SET version = $3 WHERE tenant = $1 AND order_id = $2`, a.tenant, a.order, a.version)
		if err := a.ledger.outbox.Queue(ctx, &a.batch, a.told...); err != nil {
			return fmt.Errorf("tell of the fees of order %s: %w", a.order, err)
		}
	}
	if a.batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &a.batch).Close(); err != nil {
		return fmt.Errorf("settle the fees of order %s: %w", a.order, err)
	}
	return nil
}

// clock is now as Postgres keeps it.
func (l *Ledger) clock() time.Time { return l.now().UTC().Truncate(time.Microsecond) }
