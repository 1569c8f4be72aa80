package consumer

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations is the tables of this package, for pg.Migrate.
func Migrations() pg.Migration {
	return pg.Migration{Package: "consumer", Schema: "waybill", Files: files}
}

// Migrate brings the tables of this package and of incidents, in which it tells
// of the first death of a cause, up to date and adds the inbox's partitions of
// the days around now.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if err := pg.Migrate(ctx, pool, incident.Migration(), Migrations()); err != nil {
		return err
	}
	return EnsureDays(ctx, pool)
}

// EnsureDays adds the inbox's partitions of the days around now. A program
// waits for it before it runs a group, which then makes the others: a claim
// that is written while its own day is being added may be refused, once.
func EnsureDays(ctx context.Context, pool *pgxpool.Pool) error {
	return ensureInbox(ctx, pool, 1, 1)
}

// daysAhead is enough for an operator's long weekend. Events of days without a
// partition go to the default one.
const daysAhead = 3

var inbox = daypart.Table{Schema: "waybill", Name: "inbox"}

func ensureInbox(ctx context.Context, pool *pgxpool.Pool, back, ahead int) error {
	now := time.Now()
	err := daypart.Ensure(ctx, pool, inbox,
		now.AddDate(0, 0, -back), now.AddDate(0, 0, ahead))
	if err != nil {
		return fmt.Errorf("partitions of the inbox: %w", err)
	}
	return nil
}
