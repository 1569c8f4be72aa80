package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg/daypart"
)

// daysAhead is enough for a long weekend without a sender. Events of days
// without a partition go to the default one.
const daysAhead = 3

//nolint:gochecknoglobals // constants
var (
	messages   = daypart.Table{Schema: "webhook", Name: "messages"}
	deliveries = daypart.Table{Schema: "webhook", Name: "deliveries"}
)

// EnsureDays makes the partitions of these days. A sender does so itself; call it
// after the migration, before the first event is handed over.
func EnsureDays(ctx context.Context, db *pgxpool.Pool) error {
	now, errs := time.Now(), []error(nil)
	for _, t := range []daypart.Table{messages, deliveries} {
		err := daypart.Ensure(ctx, operatorDB{db}, t, now.AddDate(0, 0, -1), now.AddDate(0, 0, daysAhead))
		if err == nil {
			err = wall(ctx, db, t)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("days of webhook.%s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// wall gives partitions the policy of their table. That of the table holds for
// whoever goes through it; this one for whoever does not.
func wall(ctx context.Context, db *pgxpool.Pool, t daypart.Table) error {
	parts, err := daypart.Parts(ctx, db, t)
	if err != nil {
		return err
	}
	for _, p := range parts {
		name := pgx.Identifier{p.Schema, p.Name}.Sanitize()
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			var walled bool
			if err := tx.QueryRow(ctx, `SELECT relforcerowsecurity FROM pg_catalog.pg_class WHERE oid = $1::text::regclass`, name).Scan(&walled); err != nil || walled {
				return err
			}
			_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('webhook days', 0)); SET LOCAL lock_timeout = '1s';
				ALTER TABLE `+name+` ENABLE ROW LEVEL SECURITY; ALTER TABLE `+name+` FORCE ROW LEVEL SECURITY;
				DROP POLICY IF EXISTS by_tenant_or_operator ON `+name+`;
				CREATE POLICY by_tenant_or_operator ON `+name+`
					USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
						ELSE tenant = current_setting('waybill.tenant', true) END)`, pgx.QueryExecModeSimpleProtocol)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
