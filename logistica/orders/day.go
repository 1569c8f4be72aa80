package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// DayRow is an order as the close of a day lists it.
type DayRow struct {
	ID          uuid.UUID
	State       State
	CreatedAt   time.Time
	PromisedAt  *time.Time
	DeliveredAt *time.Time
	Courier     uuid.UUID // uuid.Nil where there is none
	Total       int64     // hundredths of Currency
	Fee         *int64    // hundredths of Currency, of every attempt whose fee stands; nil for none
	Currency    string
}

// dayPage bounds what is in memory at once, and dayPatience how long one page
// may take to be read.
const (
	dayPage     = 1000
	dayPatience = 30 * time.Second
)

// An order that is DELIVERED stays as it is, so it was delivered when it last
// changed. A fee in another currency than the order's would be no number to put
// beside the total: there is none while the product works in one.
const selectDay = `SELECT o.id, o.state, o.created_at, o.promised_at,
		CASE WHEN o.state = 'DELIVERED' THEN o.updated_at END,
		coalesce(o.courier, '00000000-0000-0000-0000-000000000000'), o.total, (
			SELECT sum(a.fee_amount)::bigint FROM orders.assignments a
			WHERE a.tenant = o.tenant AND a.order_id = o.id AND a.fee_currency = o.currency
			  AND a.billed_at IS NOT NULL AND a.voided_at IS NULL),
		o.currency
	FROM orders.orders o
	WHERE o.tenant = $1 AND o.created_at < $2 AND (o.created_at, o.id) > ($3, $4)
	ORDER BY o.created_at, o.id LIMIT $5`

// Day gives take the orders that tenant created from one moment until before
// another, oldest first, in pages of at most 1000 that are take's only for the
// call. Between pages it holds neither a transaction nor a connection, so take
// may be as slow as a client's line; each order comes once, as it is when its
// page is read.
func (s *Store) Day(ctx context.Context, tenant uuid.UUID, from, until time.Time, take func([]DayRow) error) error {
	page := make([]DayRow, 0, dayPage)
	at, id := from.Add(-time.Microsecond), uuid.Max // the place just before from
	for {
		var err error
		if page, err = s.dayPage(ctx, page[:0], tenant, until, at, id); err != nil {
			return fmt.Errorf("read orders of a day: %w", err)
		}
		if len(page) > 0 {
			if err := take(page); err != nil {
				return err
			}
			at, id = page[len(page)-1].CreatedAt, page[len(page)-1].ID
		}
		if len(page) < dayPage {
			return nil
		}
	}
}

func (s *Store) dayPage(ctx context.Context, page []DayRow, tenant uuid.UUID, until, at time.Time, id uuid.UUID) ([]DayRow, error) {
	ctx, cancel := context.WithTimeout(ctx, dayPatience)
	defer cancel()
	err := pg.InTenant(ctx, s.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectDay, tenant, until, at, id, dayPage)
		if err != nil {
			return err
		}
		page, err = pgx.AppendRows(page, rows, scanDay)
		return err
	})
	return page, err
}

func scanDay(row pgx.CollectableRow) (r DayRow, err error) {
	err = row.Scan(&r.ID, &r.State, &r.CreatedAt, &r.PromisedAt, &r.DeliveredAt, &r.Courier, &r.Total, &r.Fee, &r.Currency)
	return r, err
}
