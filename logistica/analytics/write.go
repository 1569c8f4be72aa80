package analytics

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// write adds the delta to the tables in one round trip. Rows are sorted, so that
// transactions that meet in some of them wait in a line and not in a ring.
func (d *delta) write(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	d.writeOrders(&b)
	d.writeMinutes(&b)
	d.writeHours(&b)
	d.writeFees(&b)
	d.writeDuties(&b)
	d.writeCounts(&b) // last: the rows that most batches share
	if b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("add to analytics: %w", err)
	}
	return nil
}

// writeOrders fills in milestones. The later moment wins, in whatever order they
// come: an order that is assigned twice counts from the second time.
func (d *delta) writeOrders(b *pgx.Batch) {
	if len(d.orders) == 0 {
		return
	}
	ids := slices.SortedFunc(maps.Keys(d.orders), compareIDs)
	tenants, cols := make([]uuid.UUID, len(ids)), [5][]*time.Time{}
	for i, id := range ids {
		o := d.orders[id]
		tenants[i] = o.tenant
		for n, at := range []*time.Time{o.created, o.promised, o.assigned, o.pickedUp, o.delivered} {
			cols[n] = append(cols[n], at)
		}
	}
	b.Queue(`INSERT INTO analytics.deliveries AS d (order_id, tenant, created_at, promised_at, assigned_at, picked_up_at, delivered_at)
		SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[])
		ON CONFLICT (order_id) DO UPDATE SET created_at = greatest(d.created_at, excluded.created_at),
			promised_at = greatest(d.promised_at, excluded.promised_at), assigned_at = greatest(d.assigned_at, excluded.assigned_at),
			picked_up_at = greatest(d.picked_up_at, excluded.picked_up_at), delivered_at = greatest(d.delivered_at, excluded.delivered_at)`,
		ids, tenants, cols[0], cols[1], cols[2], cols[3], cols[4])
}

func (d *delta) writeMinutes(b *pgx.Batch) {
	var tenants []uuid.UUID
	var minutes []time.Time
	var ns []int64
	for _, k := range slices.SortedFunc(maps.Keys(d.minutes), func(x, y minuteKey) int {
		return cmp.Or(compareIDs(x.tenant, y.tenant), x.minute.Compare(y.minute))
	}) {
		tenants, minutes, ns = append(tenants, k.tenant), append(minutes, k.minute), append(ns, d.minutes[k])
	}
	if len(ns) > 0 {
		b.Queue(`INSERT INTO analytics.orders_by_minute AS m (tenant, minute, lane, created)
			SELECT t, x, $1, n FROM unnest($2::uuid[], $3::timestamptz[], $4::bigint[]) AS r (t, x, n)
			ON CONFLICT (tenant, minute, lane) DO UPDATE SET created = m.created + excluded.created`, d.lane, tenants, minutes, ns)
	}
}

func (d *delta) writeHours(b *pgx.Batch) {
	var tenants []uuid.UUID
	var hours []time.Time
	var states []string
	var ns []int64
	for _, k := range slices.SortedFunc(maps.Keys(d.hours), func(x, y hourKey) int {
		return cmp.Or(compareIDs(x.tenant, y.tenant), x.hour.Compare(y.hour), cmp.Compare(x.state, y.state))
	}) {
		tenants, hours, states, ns = append(tenants, k.tenant), append(hours, k.hour), append(states, k.state), append(ns, d.hours[k])
	}
	if len(ns) > 0 {
		b.Queue(`INSERT INTO analytics.orders_by_hour AS h (tenant, hour, state, lane, entered)
			SELECT t, x, s, $1, n FROM unnest($2::uuid[], $3::timestamptz[], $4::text[], $5::bigint[]) AS r (t, x, s, n)
			ON CONFLICT (tenant, hour, state, lane) DO UPDATE SET entered = h.entered + excluded.entered`, d.lane, tenants, hours, states, ns)
	}
}

func (d *delta) writeCounts(b *pgx.Batch) {
	var tenants []uuid.UUID
	var states []string
	var ns []int64
	for _, k := range slices.SortedFunc(maps.Keys(d.count), func(x, y stateKey) int {
		return cmp.Or(compareIDs(x.tenant, y.tenant), cmp.Compare(x.state, y.state))
	}) {
		if n := d.count[k]; n != 0 { // as many came as went
			tenants, states, ns = append(tenants, k.tenant), append(states, k.state), append(ns, n)
		}
	}
	if len(ns) > 0 {
		b.Queue(`INSERT INTO analytics.order_count AS c (tenant, state, lane, count)
			SELECT t, s, $1, n FROM unnest($2::uuid[], $3::text[], $4::bigint[]) AS r (t, s, n)
			ON CONFLICT (tenant, state, lane) DO UPDATE SET count = c.count + excluded.count`, d.lane, tenants, states, ns)
	}
}

func (d *delta) writeFees(b *pgx.Batch) {
	var tenants []uuid.UUID
	var days []time.Time
	var currencies []string
	var sums [4][]int64
	for _, k := range slices.SortedFunc(maps.Keys(d.fees), func(x, y feeKey) int {
		return cmp.Or(compareIDs(x.tenant, y.tenant), x.day.Compare(y.day), cmp.Compare(x.currency, y.currency))
	}) {
		tenants, days, currencies = append(tenants, k.tenant), append(days, k.day), append(currencies, k.currency)
		s := d.fees[k]
		for i, n := range []int64{s.fees, s.billed, s.voids, s.voided} {
			sums[i] = append(sums[i], n)
		}
	}
	if len(days) > 0 {
		b.Queue(`INSERT INTO analytics.fees_by_day AS f (tenant, day, currency, lane, fees, billed, voids, voided)
			SELECT t, x, c, $1, n1, n2, n3, n4
			FROM unnest($2::uuid[], $3::date[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) AS r (t, x, c, n1, n2, n3, n4)
			ON CONFLICT (tenant, day, currency, lane) DO UPDATE SET fees = f.fees + excluded.fees, billed = f.billed + excluded.billed,
				voids = f.voids + excluded.voids, voided = f.voided + excluded.voided`,
			d.lane, tenants, days, currencies, sums[0], sums[1], sums[2], sums[3])
	}
}

func (d *delta) writeDuties(b *pgx.Batch) {
	if len(d.duty) == 0 {
		return
	}
	var versions []int64
	var states []string
	var since []time.Time
	ids := slices.SortedFunc(maps.Keys(d.duties), compareIDs)
	for _, id := range ids {
		now := d.duties[id]
		versions, states, since = append(versions, now.version), append(states, now.state), append(since, now.since)
	}
	b.Queue(`INSERT INTO analytics.courier_duty AS c (courier, version, state, since)
		SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[])
		ON CONFLICT (courier) DO UPDATE SET version = excluded.version, state = excluded.state, since = excluded.since`,
		ids, versions, states, since)
	var hours []time.Time
	var of []string
	var ms []int64
	for _, k := range slices.SortedFunc(maps.Keys(d.time), func(x, y dutyHour) int {
		return cmp.Or(x.hour.Compare(y.hour), cmp.Compare(x.state, y.state))
	}) {
		hours, of, ms = append(hours, k.hour), append(of, k.state), append(ms, d.time[k])
	}
	if len(ms) > 0 {
		b.Queue(`INSERT INTO analytics.courier_hours AS h (hour, state, lane, ms)
			SELECT x, s, $1, n FROM unnest($2::timestamptz[], $3::text[], $4::bigint[]) AS r (x, s, n)
			ON CONFLICT (hour, state, lane) DO UPDATE SET ms = h.ms + excluded.ms`, d.lane, hours, of, ms)
	}
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
