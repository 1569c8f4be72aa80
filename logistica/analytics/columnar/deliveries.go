package columnar

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/analytics"
)

// rides are the orders delivered in a window, a row each: their moments in µs, 0
// for one that is not known. Its arguments: from less lookBack, to, the tenant
// twice, from, to.
const rides = `(SELECT any(tenant) AS whose,
		toUnixTimestamp64Micro(maxIf(time, type = ` + created + `)) AS made,
		maxIf(JSONExtractInt(data, 'promised_at'), type = ` + created + `) AS promised,
		toUnixTimestamp64Micro(maxIf(time, JSONExtractString(data, 'to') = 'ASSIGNED')) AS assigned,
		toUnixTimestamp64Micro(maxIf(time, JSONExtractString(data, 'to') = 'PICKED_UP')) AS taken,
		toUnixTimestamp64Micro(maxIf(time, JSONExtractString(data, 'to') = 'DELIVERED')) AS given
	FROM events FINAL WHERE type IN (` + created + `, ` + changed + `) AND time >= ` + moment + ` AND time < ` + moment + ofTenant + `
	GROUP BY subject
	HAVING given >= toUnixTimestamp64Micro(` + moment + `) AND given < toUnixTimestamp64Micro(` + moment + `))`

// figures are the columns of analytics.Deliveries. A percentile of nothing is -1.
var figures = `toInt64(count()),
	` + percentile("0.5", "made", "given") + `, ` + percentile("0.95", "made", "given") + `,
	` + percentile("0.5", "made", "assigned") + `, ` + percentile("0.5", "assigned", "taken") + `, ` + percentile("0.5", "taken", "given") + `,
	toInt64(countIf(promised > 0)), toInt64(countIf(promised > 0 AND given > promised))`

// percentile is the least of the durations that as many of them do not exceed,
// in whole ms, as percentile_disc has it.
func percentile(p, from, to string) string {
	known := `groupArrayIf(toInt64(floor((` + to + ` - ` + from + `) / 1000)), ` + from + ` > 0 AND ` + to + ` > 0)`
	return `if(length(` + known + `) = 0, toInt64(-1), arraySort(` + known + `)[toUInt64(ceil(` + p + ` * length(` + known + `)))])`
}

// scanned takes the columns of figures.
type scanned struct{ n, p50, p95, assign, pickup, ride, promised, late int64 }

func (s *scanned) into() []any {
	return []any{&s.n, &s.p50, &s.p95, &s.assign, &s.pickup, &s.ride, &s.promised, &s.late}
}

func (s *scanned) deliveries() analytics.Deliveries {
	known := func(ms int64) *int64 {
		if ms == -1 {
			return nil
		}
		return &ms
	}
	return analytics.Deliveries{
		Delivered: s.n, P50: known(s.p50), P95: known(s.p95), ToAssign: known(s.assign), ToPickUp: known(s.pickup), ToCustomer: known(s.ride),
		Promised: s.promised, Late: s.late,
	}
}

func window(s analytics.Scope, from, to time.Time) []any {
	args := append([]any{at(from.Add(-lookBack)), at(to)}, who(s)...)
	return append(args, at(from), at(to))
}

// Delivered is as analytics.Model's.
func (m *Model) Delivered(ctx context.Context, s analytics.Scope, from, to time.Time) (all analytics.Deliveries, hours []analytics.DeliveryHour, err error) {
	whole, err := query(ctx, m, "deliveries", func(scan func(...any) error) (analytics.Deliveries, error) {
		var c scanned
		err := scan(c.into()...)
		return c.deliveries(), err
	}, `SELECT `+figures+` FROM `+rides, window(s, from, to)...)
	if err != nil {
		return all, nil, err
	}
	if len(whole) > 0 {
		all = whole[0]
	}
	hours, err = query(ctx, m, "deliveries by hour", func(scan func(...any) error) (r analytics.DeliveryHour, err error) {
		var c scanned
		var hour int64
		err = scan(append([]any{&hour}, c.into()...)...)
		return analytics.DeliveryHour{Hour: time.Unix(hour*3600, 0).UTC(), Deliveries: c.deliveries()}, err
	}, `SELECT intDiv(given, 3600000000) AS hour, `+figures+` FROM `+rides+` GROUP BY hour ORDER BY hour`, window(s, from, to)...)
	return all, hours, err
}

// Tenants is as analytics.Model's.
func (m *Model) Tenants(ctx context.Context, from, to time.Time, limit int) ([]analytics.TenantDeliveries, error) {
	made, err := query(ctx, m, "orders by merchant", func(scan func(...any) error) (r analytics.TenantDeliveries, err error) {
		var id string
		if err = scan(&id, &r.Created); err == nil {
			r.Tenant, err = uuid.Parse(id)
		}
		return r, err
	}, `SELECT toString(tenant) AS id, toInt64(count()) AS n FROM events FINAL
		WHERE (type = `+created+` OR type = `+changed+` AND JSONExtractString(data, 'to') = 'CREATED') AND time >= `+moment+` AND time < `+moment+`
		GROUP BY id ORDER BY n DESC, id LIMIT ?`, at(from), at(to), limit)
	if err != nil {
		return nil, err
	}
	done, err := query(ctx, m, "deliveries by merchant", func(scan func(...any) error) (r analytics.TenantDeliveries, err error) {
		var id string
		var c scanned
		if err = scan(append([]any{&id}, c.into()...)...); err == nil {
			r.Tenant, err = uuid.Parse(id)
		}
		r.Deliveries = c.deliveries()
		return r, err
	}, `SELECT toString(whose) AS id, `+figures+` FROM `+rides+` GROUP BY id`, window(analytics.All(), from, to)...)
	for i, t := range made {
		if n := slices.IndexFunc(done, func(d analytics.TenantDeliveries) bool { return d.Tenant == t.Tenant }); n >= 0 {
			made[i].Deliveries = done[n].Deliveries
		}
	}
	return made, err
}
