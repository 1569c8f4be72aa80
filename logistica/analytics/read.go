package analytics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/projection"
)

// ErrUnavailable is what keeps the figures, where that cannot be asked just now
// and is not the program's own Postgres.
var ErrUnavailable = errors.New("the figures cannot be read just now")

// Scope is whose figures are read.
type Scope struct{ tenant *uuid.UUID }

// Of is one merchant's figures.
func Of(tenant uuid.UUID) Scope { return Scope{&tenant} }

// All is those of all merchants together: an administrator's.
func All() Scope { return Scope{} }

// Tenant is the one merchant of the scope, if it is one.
func (s Scope) Tenant() (id uuid.UUID, one bool) {
	if s.tenant == nil {
		return uuid.Nil, false
	}
	return *s.tenant, true
}

// Minute is how many orders were created in a minute.
type Minute struct {
	At      time.Time // its beginning, UTC
	Created int64
}

// StateHour is how many orders came into a state in an hour.
type StateHour struct {
	Hour    time.Time // its beginning, UTC
	State   string
	Entered int64
}

// Minutes lists the minutes of [from, to) in which orders were created.
func (m *Model) Minutes(ctx context.Context, s Scope, from, to time.Time) ([]Minute, error) {
	return read(ctx, m, s, "orders by minute", pgx.RowToStructByPos[Minute], `SELECT minute AT TIME ZONE 'UTC', sum(created)::bigint FROM analytics.orders_by_minute
		WHERE minute >= $1 AND minute < $2 AND ($3::uuid IS NULL OR tenant = $3) GROUP BY 1 ORDER BY 1`, from, to, s.tenant)
}

// StateHours lists what was entered in the hours of [from, to).
func (m *Model) StateHours(ctx context.Context, s Scope, from, to time.Time) ([]StateHour, error) {
	return read(ctx, m, s, "orders by hour", pgx.RowToStructByPos[StateHour], `SELECT hour AT TIME ZONE 'UTC', state, sum(entered)::bigint FROM analytics.orders_by_hour
		WHERE hour >= $1 AND hour < $2 AND ($3::uuid IS NULL OR tenant = $3) GROUP BY 1, 2 ORDER BY 1, 2`, from, to, s.tenant)
}

// States is how many orders are in each state now; states without any are left
// out.
func (m *Model) States(ctx context.Context, s Scope) (map[string]int64, error) {
	type row struct {
		State string
		Count int64
	}
	rows, err := read(ctx, m, s, "orders by state", pgx.RowToStructByPos[row], `SELECT state, sum(count)::bigint FROM analytics.orders_by_state
		WHERE $1::uuid IS NULL OR tenant = $1 GROUP BY 1`, s.tenant)
	counts := map[string]int64{}
	for _, r := range rows {
		counts[r.State] = r.Count
	}
	return counts, err
}

// FeeDay is what the platform billed on a day of [DayZone], in one currency.
type FeeDay struct {
	Day      time.Time // midnight UTC of its date
	Currency string
	Fees     int64
	Billed   int64 // in hundredths of the currency
	Voids    int64 // of fees of that day or of one before
	Voided   int64 // in hundredths
}

// FeeDays lists the days of [from, to], dates as [DayOf] makes them, that had
// any.
func (m *Model) FeeDays(ctx context.Context, s Scope, from, to time.Time) ([]FeeDay, error) {
	return read(ctx, m, s, "fees by day", pgx.RowToStructByPos[FeeDay], `SELECT day, currency, sum(fees)::bigint, sum(billed)::bigint, sum(voids)::bigint, sum(voided)::bigint
		FROM analytics.fees_by_day WHERE day >= $1::date AND day <= $2::date AND ($3::uuid IS NULL OR tenant = $3) GROUP BY 1, 2 ORDER BY 1, 2`, from, to, s.tenant)
}

// read runs a query in a transaction that sees what the scope may.
func read[T any](ctx context.Context, m *Model, s Scope, what string, row pgx.RowToFunc[T], sql string, args ...any) (out []T, err error) {
	err = s.in(ctx, m, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, row)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return out, nil
}

// in runs work in a transaction of the scope. Walls stand beneath the queries,
// which name the tenant themselves.
func (s Scope) in(ctx context.Context, m *Model, work func(pgx.Tx) error) error {
	if s.tenant != nil {
		return pg.InTenant(ctx, m.pool, s.tenant.String(), work)
	}
	return pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, projection.Operator); err != nil {
			return err
		}
		return work(tx)
	})
}
