package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// duty is what a courier does since when.
type duty struct {
	version int64
	state   string
	since   time.Time
}

type dutyChange struct {
	courier uuid.UUID
	now     duty
}

type dutyHour struct {
	hour  time.Time
	state string
}

// longestDuty bounds what one change of duty may count: a courier who forgot to
// sign off years ago is not years of work, nor a row for each hour of them.
const longestDuty = 31 * 24 * time.Hour

// readDuties reads what the couriers of the batch did before, and counts how
// long they did it.
func (d *delta) readDuties(ctx context.Context, tx pgx.Tx) error {
	if len(d.duty) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(d.duty))
	for i, c := range d.duty {
		ids[i] = c.courier
	}
	rows, err := tx.Query(ctx, `SELECT courier, version, state, since FROM analytics.courier_duty WHERE courier = ANY($1)`, ids)
	if err != nil {
		return fmt.Errorf("read couriers' duty: %w", err)
	}
	var id uuid.UUID
	var was duty
	_, err = pgx.ForEachRow(rows, []any{&id, &was.version, &was.state, &was.since}, func() error {
		was.since = was.since.UTC()
		d.duties[id] = was
		return nil
	})
	if err != nil {
		return fmt.Errorf("read couriers' duty: %w", err)
	}
	for _, c := range d.duty {
		d.change(c)
	}
	return nil
}

// change ends what the courier did. One that is older than what is known says
// nothing new: it was counted before the log forgot it.
func (d *delta) change(c dutyChange) {
	was, known := d.duties[c.courier]
	if known && c.now.version <= was.version {
		return
	}
	d.duties[c.courier] = c.now
	if known && was.state != "OFFLINE" {
		d.spend(was.state, was.since, c.now.since)
	}
}

// spend counts the time from..to, hour by hour.
func (d *delta) spend(state string, from, to time.Time) {
	if to.Sub(from) > longestDuty {
		from = to.Add(-longestDuty)
	}
	for from.Before(to) {
		hour := from.Truncate(time.Hour)
		end := hour.Add(time.Hour)
		if end.After(to) {
			end = to
		}
		// Of whole milliseconds, so that the parts of a stretch add up to it.
		d.time[dutyHour{hour, state}] += end.UnixMilli() - from.UnixMilli()
		from = end
	}
}
