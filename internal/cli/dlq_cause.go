package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/consumer"
)

// unknownCause is the error of a filter that names a cause which nothing of its
// group has or is being tried again for: a typing error must not look like work
// that is done.
func unknownCause(ctx context.Context, db *pgxpool.Pool, f consumer.DeadFilter) error {
	if f.Cause == "" {
		return nil
	}
	found, err := consumer.DeadCauses(ctx, db, consumer.DeadFilter{Group: f.Group, Cause: f.Cause, Parked: true}, 1)
	if err != nil || len(found) > 0 {
		return err
	}
	return fmt.Errorf("nothing of group %s is dead of cause %s: `waybill dlq ls --group %s` lists causes and their ids", f.Group, f.Cause, f.Group)
}
