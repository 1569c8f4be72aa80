package tables

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/waybillhq/waybill/pg/daypart"
)

// orphanAge is how old a mark without its event must be. The relay may read a
// commit in the WAL, publish it and mark it a moment before others see the
// event: such a mark is no orphan.
const orphanAge = time.Hour

// orphanBatch bounds one delete.
const orphanBatch = 10_000

// forgetOrphans deletes marks whose events have left: those that came after
// their day was emptied, as of an event that was published twice. Marks in a
// day's partition stay as long as the partition of its events does, and go with
// it.
func (o *round) forgetOrphans(ctx context.Context) {
	fallback, err := o.fallback(ctx, marksTable)
	if err != nil {
		o.fail(err)
		return
	}
	homes := []daypart.Table{fallback}
	marks, err := o.lonelyMarks(ctx)
	if err != nil {
		o.fail(err)
		return
	}
	for _, p := range marks {
		homes = append(homes, p.Table)
	}
	for _, t := range homes {
		if err := o.forgetOrphansIn(ctx, t); err != nil {
			o.fail(fmt.Errorf("forget marks of %s: %w", t.Name, err))
		}
	}
}

// lonelyMarks are old days' partitions of marks without one of events.
func (o *round) lonelyMarks(ctx context.Context) ([]daypart.Part, error) {
	events, err := daypart.Parts(ctx, o.db, eventsTable)
	if err != nil {
		return nil, err
	}
	marks, err := daypart.Parts(ctx, o.db, marksTable)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(marks, func(m daypart.Part) bool {
		return !m.Day.Before(o.cutoff) || slices.ContainsFunc(events, func(e daypart.Part) bool { return e.Day.Equal(m.Day) })
	}), nil
}

func (o *round) forgetOrphansIn(ctx context.Context, t daypart.Table) error {
	for {
		tag, err := o.db.Exec(ctx, `DELETE FROM `+ident(t)+` WHERE ctid = ANY (ARRAY (SELECT ctid FROM `+ident(t)+` p
			WHERE (id < $1 OR id >= $2) AND published_at < $3
				AND NOT EXISTS (SELECT FROM waybill.outbox_events e WHERE e.id = p.id) LIMIT $4))`,
			daypart.Floor(o.cutoff), daypart.Floor(o.ahead), o.now.Add(-orphanAge), orphanBatch)
		if err != nil || tag.RowsAffected() < orphanBatch {
			return err
		}
	}
}
