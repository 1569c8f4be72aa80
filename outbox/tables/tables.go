// Package tables owns the outbox's tables: their migrations and the partition
// of each day. It is apart from package outbox so that a program which only
// writes events links no migration library.
package tables

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is the outbox's part of the schema waybill.
func Migration() pg.Migration {
	return pg.Migration{Package: "outbox", Schema: "waybill", Files: files}
}

// DaysAhead is how many days' partitions are made before they are needed: a
// program that could not make any for so long still finds a place to write.
const DaysAhead = 7

// EnsureDays makes the partitions of the days around now, which is what a
// program must wait for before it writes; [KeepDays] makes the others.
func EnsureDays(ctx context.Context, db daypart.DB, now time.Time) error {
	return ensure(ctx, db, now.AddDate(0, 0, -1), now.AddDate(0, 0, 1))
}

// ensure makes what can be made, whatever else fails.
func ensure(ctx context.Context, db daypart.DB, from, to time.Time) error {
	var errs []error
	for _, name := range []string{"outbox_events", "outbox_published"} {
		t := daypart.Table{Schema: "waybill", Name: name}
		if err := daypart.Ensure(ctx, db, t, from, to); err != nil {
			errs = append(errs, fmt.Errorf("outbox days: %w", err))
		}
	}
	return errors.Join(errs...)
}

// KeepDays makes partitions up to DaysAhead, at once and then every hour until
// ctx ends. A failure is logged and tried again the next time: the days ahead
// give it a week.
func KeepDays(ctx context.Context, db daypart.DB, log *slog.Logger) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for now := time.Now(); ; {
		if err := ensure(ctx, db, now, now.AddDate(0, 0, DaysAhead)); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "make partitions ahead", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case now = <-tick.C:
		}
	}
}
