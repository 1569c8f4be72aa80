package analytics

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Deliveries is what was delivered in some time. A percentile is the least of
// the durations that as many of them do not exceed; nil where there are none.
type Deliveries struct {
	Delivered  int64
	P50, P95   *int64 // ms from creation to delivery
	ToAssign   *int64 // ms from creation to the last assignment, the median
	ToPickUp   *int64 // ms from that to the pickup, the median
	ToCustomer *int64 // ms from the pickup to the delivery, the median
	Promised   int64  // of the delivered, those that a moment was promised for
	Late       int64  // of these, those that came after it
}

// DeliveryHour is what was delivered in an hour.
type DeliveryHour struct {
	Hour time.Time // its beginning, UTC
	Deliveries
}

// TenantDeliveries is what a merchant had created and delivered.
type TenantDeliveries struct {
	Tenant  uuid.UUID
	Created int64
	Deliveries
}

const deliveriesSQL = `count(*),
	percentile_disc(0.5) WITHIN GROUP (ORDER BY analytics.ms(created_at, delivered_at)),
	percentile_disc(0.95) WITHIN GROUP (ORDER BY analytics.ms(created_at, delivered_at)),
	percentile_disc(0.5) WITHIN GROUP (ORDER BY analytics.ms(created_at, assigned_at)),
	percentile_disc(0.5) WITHIN GROUP (ORDER BY analytics.ms(assigned_at, picked_up_at)),
	percentile_disc(0.5) WITHIN GROUP (ORDER BY analytics.ms(picked_up_at, delivered_at)),
	count(promised_at), count(*) FILTER (WHERE delivered_at > promised_at)
	FROM analytics.deliveries WHERE delivered_at >= $1 AND delivered_at < $2`

// Delivered sums [from, to) up, and lists its hours that had any delivery.
func (m *Model) Delivered(ctx context.Context, s Scope, from, to time.Time) (all Deliveries, hours []DeliveryHour, err error) {
	type row struct {
		Hour *time.Time
		Deliveries
	}
	rows, err := read(ctx, m, s, "deliveries", pgx.RowToStructByPos[row], `SELECT date_trunc('hour', delivered_at AT TIME ZONE 'UTC') AS hour, `+deliveriesSQL+
		` AND ($3::uuid IS NULL OR tenant = $3) GROUP BY GROUPING SETS ((hour), ()) ORDER BY hour`, from, to, s.tenant)
	for _, r := range rows {
		if r.Hour == nil {
			all = r.Deliveries
			continue
		}
		hours = append(hours, DeliveryHour{*r.Hour, r.Deliveries})
	}
	return all, hours, err
}

// Tenants lists the merchants with the most orders created in the hours of
// [from, to), with what of any of theirs was delivered then.
func (m *Model) Tenants(ctx context.Context, from, to time.Time, limit int) ([]TenantDeliveries, error) {
	return read(ctx, m, All(), "deliveries by merchant", pgx.RowToStructByPos[TenantDeliveries], `WITH
		made AS (SELECT tenant, sum(entered)::bigint AS created FROM analytics.orders_by_hour
			WHERE hour >= $1 AND hour < $2 AND state = 'CREATED' AND entered > 0 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $3),
		done AS (SELECT tenant, `+deliveriesSQL+` AND tenant IN (SELECT tenant FROM made) GROUP BY 1)
		SELECT tenant, created, `+doneColumns+` FROM made LEFT JOIN done AS done (tenant, n, p50, p95, a, p, c, promised, late) USING (tenant)
		ORDER BY created DESC, tenant`, from, to, limit)
}

const doneColumns = `coalesce(n, 0), p50, p95, a, p, c, coalesce(promised, 0), coalesce(late, 0)`
