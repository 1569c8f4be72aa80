package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/pg/daypart"
)

var (
	eventsTable = daypart.Table{Schema: "waybill", Name: "outbox_events"}
	marksTable  = daypart.Table{Schema: "waybill", Name: "outbox_published"}
)

// round is one round of a retention.
type round struct {
	*Retention
	db     *pgxpool.Conn // holds the lock
	now    time.Time
	today  time.Time
	cutoff time.Time // the first day that stays
	ahead  time.Time // the first day for which no partition is made yet
	days   []*day    // old ones with a partition of events, oldest first
	stray  bool      // the default partition of events has rows
	strays []archive.File
	report Report
	errs   []error
}

// day is one day of the outbox.
type day struct {
	date   time.Time
	events daypart.Part
	marks  *daypart.Part // nil: its marks lie in the default partition

	found   bool // there is something to empty
	ready   bool // and it is archived
	written archive.Result
	files   []archive.File // that hold its events
}

func (d *day) label() string { return d.date.Format(time.DateOnly) }

// run does what there is to do. Its parts stand in this order so that the slot
// is waited for once, and not a lock held meanwhile.
func (o *round) run(ctx context.Context) {
	o.archiveDays(ctx)
	o.archiveStrays(ctx)
	if ctx.Err() != nil {
		return
	}
	behind, err := o.waitForSlots(ctx)
	switch {
	case err != nil:
		o.fail(err)
	case behind != "":
		o.keepAll(fmt.Sprintf("the relay's slot %s is not past it yet: let the relay run, or drop the slot if nothing reads it any more", behind))
	default:
		o.emptyDays(ctx)
		o.removeStrays(ctx)
		o.forgetOrphans(ctx)
	}
	o.dropParts(ctx)
}

// look finds out what time it is and which days are old.
func (o *round) look(ctx context.Context) error {
	if o.cfg.Now != nil {
		o.now = o.cfg.Now()
	} else if err := o.db.QueryRow(ctx, `SELECT now()`).Scan(&o.now); err != nil {
		return err
	}
	o.today = daypart.Day(o.now)
	o.cutoff = o.today.AddDate(0, 0, -o.cfg.KeepDays)
	o.ahead = o.today.AddDate(0, 0, DaysAhead+1)
	events, err := daypart.Parts(ctx, o.db, eventsTable)
	if err != nil {
		return err
	}
	marks, err := daypart.Parts(ctx, o.db, marksTable)
	if err != nil {
		return err
	}
	for _, p := range events {
		if !p.Day.Before(o.cutoff) {
			continue
		}
		d := &day{date: p.Day, events: p}
		if i := slices.IndexFunc(marks, func(m daypart.Part) bool { return m.Day.Equal(p.Day) }); i >= 0 {
			d.marks = &marks[i]
		}
		o.days = append(o.days, d)
	}
	return nil
}

func (o *round) fail(err error) { o.errs = append(o.errs, err) }

func (o *round) keep(what, why string) {
	o.report.Kept = append(o.report.Kept, Kept{what, why})
}

// keepAll tells of everything that is archived and has to stay for now.
func (o *round) keepAll(why string) {
	for _, d := range o.days {
		if d.ready {
			o.keep(d.label(), why)
		}
	}
	if len(o.strays) > 0 {
		o.keep("default", why)
	}
}

// archiveDays copies what is to leave. A full disk ends it: the days after
// would meet it as well.
func (o *round) archiveDays(ctx context.Context) {
	for _, d := range o.days {
		err := o.archiveDay(ctx, d)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			o.fail(err)
			return
		}
		o.archiveFailed(ctx, d.label(), err)
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return
		}
	}
}

func (o *round) archiveFailed(ctx context.Context, label string, err error) {
	err = fmt.Errorf("archive %s: %w", label, err)
	o.fail(err)
	o.keep(label, "it could not be archived")
	kind := "not archived"
	var damaged *archive.DamagedError
	if errors.As(err, &damaged) {
		kind = "archive damaged"
	}
	o.note(ctx, kind, label, err)
}
