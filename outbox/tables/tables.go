// Package tables owns the outbox's tables: their migrations and the partition
// of each day. It is apart from package outbox so that a program which only
// writes events links no migration library.
package tables

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is the outbox's part of the schema waybill.
func Migration() pg.Migration {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return pg.Migration{Package: "outbox", Schema: "waybill", Files: sub}
}

// DaysAhead is how many days' partitions are made before they are needed: a
// program that could not make any for so long still finds a place to write.
const DaysAhead = 7

// EnsureDays makes the partitions of yesterday to DaysAhead from now.
func EnsureDays(ctx context.Context, db daypart.DB, now time.Time) error {
	for _, name := range []string{"outbox_events", "outbox_published"} {
		t := daypart.Table{Schema: "waybill", Name: name}
		if err := daypart.Ensure(ctx, db, t, now.AddDate(0, 0, -1), now.AddDate(0, 0, DaysAhead)); err != nil {
			return fmt.Errorf("outbox days: %w", err)
		}
	}
	return nil
}

// KeepDays makes partitions every hour until ctx ends. A failure is logged and
// tried again the next time: the days ahead give it a week.
func KeepDays(ctx context.Context, db daypart.DB, log *slog.Logger) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if err := EnsureDays(ctx, db, now); err != nil && ctx.Err() == nil {
				log.ErrorContext(ctx, "make partitions ahead", "error", err)
			}
		}
	}
}
