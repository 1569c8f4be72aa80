package billing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// Fee is the fee of an order's latest attempt, which is the one that stands if
// one does; [ErrNotFound] if tenant has none of that order.
func (l *Ledger) Fee(ctx context.Context, tenant, order uuid.UUID) (f Fee, err error) {
	err = pg.InTenant(ctx, l.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectFee+`WHERE tenant = $1 AND order_id = $2 ORDER BY attempt DESC LIMIT 1`, tenant, order)
		if err != nil {
			return err
		}
		f, err = pgx.CollectExactlyOneRow(rows, scanFee)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Fee{}, ErrNotFound
	}
	if err != nil {
		return Fee{}, fmt.Errorf("read the fee of order %s: %w", order, err)
	}
	return f, nil
}

// MaxPeriod is the longest that [Ledger.Fees] reads at once.
const MaxPeriod = 32 * 24 * time.Hour

// page is how many fees are held in memory and read in one transaction.
const page = 500

// Fees are the fees that were billed to tenant at from or later and before to,
// by time, as they stand now: one that was voided since is there and says so. A
// period ends with an error, if with any, and is at most [MaxPeriod] long.
//
// Fees are read by the page as they are asked for, so a caller may write them
// out as slowly as it must. One that is billed meanwhile may be missing.
func (l *Ledger) Fees(ctx context.Context, tenant uuid.UUID, from, to time.Time) iter.Seq2[Fee, error] {
	return func(yield func(Fee, error) bool) {
		if to.Sub(from) > MaxPeriod {
			yield(Fee{}, fmt.Errorf("read fees: want a period of at most %d days", int(MaxPeriod.Hours()/24)))
			return
		}
		after := Fee{MadeAt: from}
		for {
			fees, err := l.page(ctx, tenant, after, to)
			if err != nil {
				yield(Fee{}, fmt.Errorf("read fees: %w", err))
				return
			}
			for _, f := range fees {
				if !yield(f, nil) {
					return
				}
			}
			if len(fees) < page {
				return
			}
			after = fees[len(fees)-1]
		}
	}
}

// page is the fees behind one, which at first is no fee but only a time.
func (l *Ledger) page(ctx context.Context, tenant uuid.UUID, after Fee, to time.Time) (fees []Fee, err error) {
	err = pg.InTenant(ctx, l.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectFee+`WHERE tenant = $1 AND fee_id IS NOT NULL AND made_at < $5
			AND (made_at, order_id, attempt) > ($2, $3, $4)
			ORDER BY made_at, order_id, attempt LIMIT $6`, tenant, after.MadeAt, after.Order, after.Attempt, to, page)
		if err != nil {
			return err
		}
		fees, err = pgx.CollectRows(rows, scanFee)
		return err
	})
	return fees, err
}
