// Package columnar reads the figures of package analytics from the log of events
// that projection/clickhouse keeps in ClickHouse. There are no other tables:
// each figure is computed when it is asked for, from events read once (FINAL),
// so that it is right however often they were written.
//
// Limits: an event counts by its own time, and what a delivery or a courier's
// hour needs is looked for in the 31 days before it. A merchant's figures are
// walled by the query alone: ClickHouse is asked by one user for all.
package columnar

import (
	"context"
	"fmt"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/analytics"
)

// Model reads figures from ClickHouse. It is safe for concurrent use.
type Model struct{ conn driver.Conn }

// New makes a model on a store's connection.
func New(conn driver.Conn) *Model { return &Model{conn} }

// lookBack is how long before a window the beginnings of what ends in it may lie.
const lookBack = 31 * 24 * time.Hour

const (
	created  = `'logistica.orders.OrderCreated'`
	changed  = `'logistica.orders.OrderStatusChanged'`
	duty     = `'logistica.couriers.CourierStatusChanged'`
	ofTenant = ` AND (? = '' OR tenant = ?)`
)

// who is the scope as the two arguments of ofTenant.
func who(s analytics.Scope) []any {
	tenant := ""
	if id, one := s.Tenant(); one {
		tenant = id.String()
	}
	return []any{tenant, tenant}
}

// at is a moment as the queries compare it.
func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000") }

const moment = `toDateTime64(?, 6, 'UTC')`

// Counts is how many orders of tenant are in each state.
func (m *Model) Counts(ctx context.Context, tenant uuid.UUID) (map[string]int64, error) {
	return m.States(ctx, analytics.Of(tenant))
}

// States is as analytics.Model's.
func (m *Model) States(ctx context.Context, s analytics.Scope) (map[string]int64, error) {
	rows, err := query(ctx, m, "orders by state", func(scan func(...any) error) (r analytics.StateHour, err error) {
		return r, scan(&r.State, &r.Entered)
	}, `SELECT moved.1 AS state, toInt64(sum(moved.2)) AS n FROM (
			SELECT arrayJoin(if(type = `+created+`, [('CREATED', 1)], [(JSONExtractString(data, 'to'), 1), (JSONExtractString(data, 'from'), -1)])) AS moved
			FROM events FINAL WHERE type IN (`+created+`, `+changed+`)`+ofTenant+`)
		GROUP BY state HAVING n > 0`, who(s)...)
	counts := map[string]int64{}
	for _, r := range rows {
		counts[r.State] = r.Entered
	}
	return counts, err
}

// Minutes is as analytics.Model's.
func (m *Model) Minutes(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.Minute, error) {
	return query(ctx, m, "orders by minute", func(scan func(...any) error) (r analytics.Minute, err error) {
		var sec int64
		err = scan(&sec, &r.Created)
		r.At = time.Unix(sec, 0).UTC()
		return r, err
	}, `SELECT toInt64(toUnixTimestamp(toStartOfMinute(toDateTime(time)))) AS minute, toInt64(count()) FROM events FINAL
		WHERE type = `+created+` AND time >= `+moment+` AND time < `+moment+ofTenant+` GROUP BY minute ORDER BY minute`,
		append([]any{at(from), at(to)}, who(s)...)...)
}

// StateHours is as analytics.Model's.
func (m *Model) StateHours(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.StateHour, error) {
	return query(ctx, m, "orders by hour", func(scan func(...any) error) (r analytics.StateHour, err error) {
		var sec int64
		err = scan(&sec, &r.State, &r.Entered)
		r.Hour = time.Unix(sec, 0).UTC()
		return r, err
	}, `SELECT toInt64(toUnixTimestamp(toStartOfHour(toDateTime(time)))) AS hour, if(type = `+created+`, 'CREATED', JSONExtractString(data, 'to')) AS state, toInt64(count())
		FROM events FINAL WHERE type IN (`+created+`, `+changed+`) AND time >= `+moment+` AND time < `+moment+ofTenant+`
		GROUP BY hour, state ORDER BY hour, state`, append([]any{at(from), at(to)}, who(s)...)...)
}

// FeeDays is as analytics.Model's.
func (m *Model) FeeDays(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.FeeDay, error) {
	const billed, voided = `'logistica.billing.PlatformFeeBilled'`, `'logistica.billing.PlatformFeeVoided'`
	const dayOf = `toString(toDate(time, '` + analytics.DayZone + `'))`
	amount := `JSONExtractInt(data, 'amount')`
	return query(ctx, m, "fees by day", func(scan func(...any) error) (r analytics.FeeDay, err error) {
		var day string
		if err = scan(&day, &r.Currency, &r.Fees, &r.Billed, &r.Voids, &r.Voided); err != nil {
			return r, err
		}
		r.Day, err = time.Parse(time.DateOnly, day)
		return r, err
	}, `SELECT `+dayOf+` AS day, JSONExtractString(data, 'currency') AS currency,
			toInt64(countIf(type = `+billed+`)), toInt64(sumIf(`+amount+`, type = `+billed+`)),
			toInt64(countIf(type = `+voided+`)), toInt64(sumIf(`+amount+`, type = `+voided+`))
		FROM events FINAL WHERE type IN (`+billed+`, `+voided+`) AND time >= `+moment+` AND time < `+moment+ofTenant+`
		GROUP BY day, currency HAVING day >= ? AND day <= ? ORDER BY day, currency`,
		append(append([]any{at(from), at(to.AddDate(0, 0, 2))}, who(s)...), from.Format(time.DateOnly), to.Format(time.DateOnly))...)
}

// query runs sql and reads its rows.
func query[T any](ctx context.Context, m *Model, what string, read func(scan func(...any) error) (T, error), sql string, args ...any) ([]T, error) {
	rows, err := m.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, failed(ctx, what, err)
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		r, err := read(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, failed(ctx, what, err)
	}
	return out, nil
}

// failed is ClickHouse's failure, unless the caller gave up.
func failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return fmt.Errorf("read %s: %w: %w", what, analytics.ErrUnavailable, err)
}
