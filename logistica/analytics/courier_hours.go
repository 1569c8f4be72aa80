package analytics

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// CourierHour is how long couriers did what in an hour, all of them together.
type CourierHour struct {
	Hour                              time.Time // its beginning, UTC
	Available, Reserved, Busy, Paused time.Duration
}

// CourierHours lists the hours of [from, to) in which a courier was on duty, up
// to now: what they are doing still counts until then.
func (m *Model) CourierHours(ctx context.Context, from, to, now time.Time) ([]CourierHour, error) {
	type row struct {
		Hour  time.Time
		State string
		Ms    int64
	}
	rows, err := read(ctx, m, All(), "couriers' hours", pgx.RowToStructByPos[row], `SELECT h AT TIME ZONE 'UTC', state, sum(ms)::bigint FROM (
			SELECT hour AS h, state, ms FROM analytics.courier_hours WHERE hour >= $1 AND hour < $2
			UNION ALL
			SELECT h, state, (floor(extract(epoch FROM least(h + interval '1 hour', $3)) * 1000) - floor(extract(epoch FROM greatest(since, h)) * 1000))::bigint
			FROM analytics.courier_duty, generate_series($1::timestamptz, $2::timestamptz - interval '1 microsecond', interval '1 hour') AS h
			WHERE state <> 'OFFLINE' AND since < least(h + interval '1 hour', $3) AND h < $3
		) spent GROUP BY 1, 2 ORDER BY 1`, from, to, now)
	return Spent(rows, func(r row) (time.Time, string, time.Duration) {
		return r.Hour, r.State, time.Duration(r.Ms) * time.Millisecond
	}), err
}

// Spent makes each hour's states one value, and leaves out hours without any.
// The rows are sorted by hour.
func Spent[R any](rows []R, of func(R) (hour time.Time, state string, spent time.Duration)) (out []CourierHour) {
	for _, r := range rows {
		hour, state, d := of(r)
		if len(out) == 0 || !out[len(out)-1].Hour.Equal(hour) {
			out = append(out, CourierHour{Hour: hour})
		}
		h := &out[len(out)-1]
		switch state {
		case "AVAILABLE":
			h.Available += d
		case "RESERVED":
			h.Reserved += d
		case "BUSY":
			h.Busy += d
		case "PAUSED":
			h.Paused += d
		}
	}
	return slices.DeleteFunc(out, func(h CourierHour) bool { return h.Available+h.Reserved+h.Busy+h.Paused == 0 })
}
