package saga

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/saga/contracts"
)

// The observer reads its own events, too: an outbox gives them their ids, and it
// is these that services name as the cause of what they answer.

func (o *Observer) askWasHeard(ctx context.Context, tx pgx.Tx, e event.Of[contracts.StepOverdue]) error {
	d := e.Data
	return heard(ctx, tx, Ref{e.Tenant, d.Saga, d.Key, int(d.Round)}, e.ID,
		`what = 'asked' AND step = $6 AND direction = $7 AND asked = $8 AND due_at = $9`, d.Step, way(d.Direction), d.Asked, d.DueAt)
}

func (o *Observer) skipWasHeard(ctx context.Context, tx pgx.Tx, e event.Of[contracts.StepSkipped]) error {
	d := e.Data
	return heard(ctx, tx, Ref{e.Tenant, d.Saga, d.Key, int(d.Round)}, e.ID,
		`what = 'skipped' AND step = $6 AND direction = $7`, d.Step, way(d.Direction))
}

// heard notes the id of the event that told of an entry. It may be gone, or of
// an observer elsewhere.
func heard(ctx context.Context, tx pgx.Tx, r Ref, id uuid.UUID, entry string, args ...any) error {
	if err := pg.SetTenant(ctx, tx, r.Tenant); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE saga.entries SET told_as = $5`+ofInstance+` AND told_as IS NULL AND `+entry, append(append(r.args(), id), args...)...)
	if err != nil {
		return fmt.Errorf("note the event that told of a step of saga %s: %w", r, err)
	}
	return nil
}

func way(d contracts.Direction) Direction {
	if d == contracts.DirectionBack {
		return Back
	}
	return Forward
}
