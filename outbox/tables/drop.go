package tables

import (
	"context"
	"errors"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

// dropParts takes the partitions of old days off, where they are empty and
// nobody holds the table. An empty partition does no harm: planning a query
// over the whole table gets a little slower with each.
func (o *round) dropParts(ctx context.Context) {
	var events []daypart.Part
	for _, d := range o.days {
		events = append(events, d.events)
	}
	o.dropAll(ctx, eventsTable, events)
	// After its events: a day that has some left keeps the place of its marks.
	marks, err := o.lonelyMarks(ctx)
	if err != nil {
		o.fail(err)
		return
	}
	o.dropAll(ctx, marksTable, marks)
}

// dropAll drops the empty ones of parts. Once the table is found held, it is
// left alone until the next round: each further try would cost writers a moment
// for nothing.
func (o *round) dropAll(ctx context.Context, t daypart.Table, parts []daypart.Part) {
	held := false
	for _, p := range parts {
		if rows, err := o.hasRows(ctx, p.Table); err != nil || rows {
			if err != nil {
				o.fail(err)
			}
			continue // told where its events are
		}
		var err error
		if !held {
			err = daypart.Drop(ctx, o.db, t, p)
		}
		switch {
		case held || errors.Is(err, daypart.ErrBusy) || pg.Conflict(err):
			held = true
			o.keep(p.Name, "the partition is empty, and "+t.Name+" is held by a transaction that is still open")
		case err == nil:
			o.report.Dropped = append(o.report.Dropped, p.Name)
			o.at("dropped")
		case errors.Is(err, daypart.ErrNotEmpty): // a moment ago; the next round sees to it
		default:
			o.fail(err)
		}
	}
}
