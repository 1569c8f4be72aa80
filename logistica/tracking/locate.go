package tracking

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// TrailLength is how many fixes of an order's way are kept: about forty minutes
// at one in five seconds.
const TrailLength = 500

// locate takes a set of fixes. The newest of each courier moves the position,
// unless it is older than that; each that belongs to a ride takes its place in
// the ring of its trail, unless what is there is newer. Both hold for fixes that
// come late, twice, or within one set. Rows are taken in the order of their
// keys: two sets that meet in the same couriers would otherwise wait for each
// other.
const locate = `WITH given AS (
	SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::timestamptz[], $5::timestamptz[],
		$6::float8[], $7::float8[], $8::real[], $9::real[], $10::real[])
		AS g (courier_id, at, seq, fix_time, received_at, lat, lng, speed_mps, heading_deg, accuracy_m)
), newest AS (
	SELECT DISTINCT ON (courier_id) * FROM given ORDER BY courier_id, at DESC, seq DESC
), moved AS (
	INSERT INTO tracking.positions AS p
		(courier_id, at, seq, fix_time, received_at, lat, lng, speed_mps, heading_deg, accuracy_m)
	SELECT * FROM newest ORDER BY courier_id
	ON CONFLICT (courier_id) DO UPDATE SET at = excluded.at, seq = excluded.seq,
		fix_time = excluded.fix_time, received_at = excluded.received_at, lat = excluded.lat, lng = excluded.lng,
		speed_mps = excluded.speed_mps, heading_deg = excluded.heading_deg, accuracy_m = excluded.accuracy_m
	WHERE (p.at, p.seq) < (excluded.at, excluded.seq)
), ridden AS (
	SELECT DISTINCT ON (r.order_id, place) r.order_id, g.place, r.tenant, g.courier_id, g.at, g.seq, g.lat, g.lng
	FROM (SELECT *, ((seq % $11) + $11) % $11 AS place FROM given) g
	JOIN tracking.rides r ON r.courier_id = g.courier_id AND r.active AND g.at >= r.assigned_at
	ORDER BY r.order_id, place, g.at DESC, g.seq DESC
)
INSERT INTO tracking.trail AS t (order_id, place, tenant, courier_id, at, seq, lat, lng)
SELECT * FROM ridden ORDER BY order_id, place
ON CONFLICT (order_id, place) DO UPDATE SET tenant = excluded.tenant, courier_id = excluded.courier_id,
	at = excluded.at, seq = excluded.seq, lat = excluded.lat, lng = excluded.lng
WHERE (t.at, t.seq) < (excluded.at, excluded.seq)`

// Located moves couriers' positions, those of a set at once. A fix of the future
// counts as of when it was received: a device whose clock is ahead would
// otherwise stand still for as long.
func (t *Tracker) Located(ctx context.Context, tx pgx.Tx, es []event.Of[contracts.CourierLocationUpdated]) error {
	s := newSet(len(es))
	for i := range es {
		s.add(&es[i].Data)
	}
	if len(s.couriers) == 0 {
		return nil
	}
	var b pgx.Batch
	b.Queue(`SELECT set_config('waybill.tracking', 'on', true)`)
	b.Queue(locate, s.couriers, s.at, s.seqs, s.fixed, s.received, s.lats, s.lngs, s.speeds, s.headings, s.accuracies, int64(TrailLength))
	b.Queue(`SELECT set_config('waybill.tracking', '', true)`) // handlers of single tenants may share tx
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("move %d positions: %w", len(es), err)
	}
	return nil
}

// set is columns of fixes.
type set struct {
	couriers                     []uuid.UUID
	seqs                         []int64
	at, fixed, received          []time.Time
	lats, lngs                   []float64
	speeds, headings, accuracies []*float32
}

func newSet(n int) *set {
	return &set{
		couriers: make([]uuid.UUID, 0, n), seqs: make([]int64, 0, n),
		at: make([]time.Time, 0, n), fixed: make([]time.Time, 0, n), received: make([]time.Time, 0, n),
		lats: make([]float64, 0, n), lngs: make([]float64, 0, n),
		speeds: make([]*float32, 0, n), headings: make([]*float32, 0, n), accuracies: make([]*float32, 0, n),
	}
}

// add leaves out what is no place on earth, not a number included: one such fix must not park its
// courier's whole way.
func (s *set) add(d *contracts.CourierLocationUpdated) {
	if !(math.Abs(d.Lat) <= 90 && math.Abs(d.Lng) <= 180) {
		return
	}
	at := d.FixTime
	if d.ReceivedAt.Before(at) {
		at = d.ReceivedAt
	}
	s.couriers, s.seqs = append(s.couriers, d.CourierID), append(s.seqs, d.Seq)
	s.at, s.fixed, s.received = append(s.at, at), append(s.fixed, d.FixTime), append(s.received, d.ReceivedAt)
	s.lats, s.lngs = append(s.lats, d.Lat), append(s.lngs, d.Lng)
	s.speeds, s.headings = append(s.speeds, d.SpeedMps), append(s.headings, d.HeadingDeg)
	s.accuracies = append(s.accuracies, d.AccuracyM)
}
