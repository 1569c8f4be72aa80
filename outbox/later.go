package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// maxDelay bounds how far ahead an event may be due: what lies further is a
// mistake, or a matter for a table of the application's own.
const maxDelay = 366 * 24 * time.Hour

// ErrTooFar is why an event is refused that is due in more than a year.
var ErrTooFar = errors.New("due more than 366 days from now")

// Later adds events that leave at a moment to come; see [Outbox.At].
type Later struct {
	outbox *Outbox
	due    time.Time
}

// At is the outbox for events that are to leave at due: they wait in Postgres,
// in waybill.outbox_later, and until then can be taken back with
// [Outbox.Cancel]. What is due already leaves as soon as it commits.
//
// The moment is kept to about a second while a relay's process runs (package
// outbox/later moves what is due), and is made up for when none did. The event
// takes its place in its key's order then, not before: ce_time and the time in
// its id are the moment it was due. Between events of a key the order is
// that of the moments, to the millisecond, and for one moment that in which they
// were added.
func (o *Outbox) At(due time.Time) Later { return Later{o, due.UTC().Truncate(time.Millisecond)} }

// Add writes events in tx, as [Outbox.Add] does, and returns their ids in the
// same order. The gate does not hold them back: they burden nobody yet.
func (l Later) Add(ctx context.Context, tx pgx.Tx, events ...event.Data) ([]uuid.UUID, error) {
	var b pgx.Batch
	ids, err := l.Queue(ctx, &b, events...)
	if err != nil || b.Len() == 0 {
		return ids, err
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("write outbox for later: %w", err)
	}
	return ids, nil
}

// Queue puts the statements that Add would run into b; see [Outbox.Queue].
func (l Later) Queue(ctx context.Context, b *pgx.Batch, events ...event.Data) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, 0, len(events))
	for _, d := range events {
		c := d.EventContract()
		if l.due.After(l.outbox.now().Add(maxDelay)) {
			return nil, &Refusal{Type: c.Type, Key: d.EventKey(), Reason: ErrTooFar}
		}
		e, err := l.outbox.entry(d, c.EnvelopeAt(ctx, d, l.due))
		if err != nil {
			return nil, err
		}
		b.Queue(insertLater, append(e.row(), l.due)...)
		ids = append(ids, e.ID)
	}
	return ids, nil
}

const insertLater = `INSERT INTO waybill.outbox_later
	(id, topic, subject, source, type, time, tenant, sequence, correlation_id, causation_id, trace_parent, schema_fingerprint, body, due_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

// Cancel takes back events of ctx's tenant that were added for later and are
// still there, and tells how many: the others have left, or are leaving. It is
// done if tx commits.
func (o *Outbox) Cancel(ctx context.Context, tx pgx.Tx, ids ...uuid.UUID) (int, error) {
	tenant := event.Tenant(ctx)
	if tenant == "" {
		return 0, ErrMissingTenant
	}
	done, err := tx.Exec(ctx, `DELETE FROM waybill.outbox_later WHERE id = ANY($1) AND tenant = $2`, ids, tenant)
	if err != nil {
		return 0, fmt.Errorf("take events back: %w", err)
	}
	return int(done.RowsAffected()), nil
}
