package columnar

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/logistica/analytics"
)

// CourierHours is as analytics.Model's.
func (m *Model) CourierHours(ctx context.Context, from, to, now time.Time) ([]analytics.CourierHour, error) {
	type stretch struct {
		hour  time.Time
		state string
		spent time.Duration
	}
	rows, err := query(ctx, m, "couriers' hours", func(scan func(...any) error) (s stretch, err error) {
		var hour, ms int64
		err = scan(&hour, &s.state, &ms)
		s.hour, s.spent = time.Unix(hour*3600, 0).UTC(), time.Duration(ms)*time.Millisecond
		return s, err
	}, `SELECT h AS hour, state, toInt64(sum(least(until, (h + 1) * 3600000) - greatest(since, h * 3600000))) AS spent FROM (
			SELECT state, since, until, arrayJoin(range(intDiv(since, 3600000), intDiv(until - 1, 3600000) + 1)) AS h FROM (
				SELECT JSONExtractString(data, 'to') AS state, toInt64(floor(toUnixTimestamp64Micro(time) / 1000)) AS since,
					leadInFrame(toInt64(floor(toUnixTimestamp64Micro(time) / 1000)), 1, toInt64(?))
						OVER (PARTITION BY subject ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS until
				FROM events FINAL WHERE type = `+duty+` AND time >= `+moment+`)
			WHERE state <> 'OFFLINE' AND until > since)
		WHERE h >= ? AND h < ? GROUP BY h, state ORDER BY h`,
		now.UnixMilli(), at(from.Add(-lookBack)), from.Unix()/3600, to.Unix()/3600)
	if err != nil {
		return nil, err
	}
	return analytics.Spent(rows, func(s stretch) (time.Time, string, time.Duration) { return s.hour, s.state, s.spent }), nil
}
