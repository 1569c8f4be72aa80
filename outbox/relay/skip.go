package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Why a skip is refused; compare with errors.Is.
var (
	ErrNotRefused   = errors.New("no partition waits for this event")
	ErrUnknownEvent = errors.New("no partition waits for this event, and the outbox has no such event")
	ErrPublished    = errors.New("the event is published, or given up already")
	ErrNotAsked     = errors.New("nobody asked for the event to be given up")
)

// Asked is what came of asking to give an event up.
type Asked struct {
	// Skip is what holds: what was asked first.
	Skip
	Again   bool         // it was noted before, and nothing changed
	Stopped *StoppedPart // what waits for the event; nil: nothing does
}

// AskSkip has the relay give an event up: it is never published, and marked
// with partition and offset -1. The event must be one that a partition waits
// for, or it is ErrNotRefused, or ErrUnknownEvent. With force it may be another,
// which the relay passes over once it is refused. Asking again changes nothing.
func AskSkip(ctx context.Context, db *pgxpool.Pool, skip Skip, force bool) (asked Asked, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT topic, partition, event_id, error, since, tried_at, attempts
			FROM waybill.outbox_stopped WHERE event_id = $1 LIMIT 1`, skip.Event)
		if err != nil {
			return err
		}
		stopped, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[StoppedPart])
		if err != nil {
			return err
		}
		if len(stopped) > 0 {
			asked.Stopped = stopped[0]
		}
		asked.Skip, err = findSkip(ctx, tx, skip.Event)
		asked.Again = err == nil
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if asked.Stopped == nil {
			if err := mayForce(ctx, tx, skip.Event, force || asked.Again); err != nil {
				return err
			}
		}
		if asked.Again {
			return nil
		}
		asked.Skip = skip
		return tx.QueryRow(ctx, `INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) VALUES ($1, $2, $3) RETURNING asked_at`,
			skip.Event, skip.Reason, skip.AskedBy).Scan(&asked.AskedAt)
	})
	if err != nil {
		return Asked{}, fmt.Errorf("give up event %s: %w", skip.Event, err)
	}
	return asked, nil
}

func findSkip(ctx context.Context, tx pgx.Tx, event uuid.UUID) (s Skip, err error) {
	err = tx.QueryRow(ctx, `SELECT event_id, reason, asked_by, asked_at FROM waybill.outbox_skips WHERE event_id = $1`, event).
		Scan(&s.Event, &s.Reason, &s.AskedBy, &s.AskedAt)
	return s, err
}

// mayForce refuses what could have no effect, or none that was meant.
func mayForce(ctx context.Context, tx pgx.Tx, event uuid.UUID, force bool) error {
	var published, there bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.outbox_published WHERE id = $1),
		EXISTS (SELECT FROM waybill.outbox_events WHERE id = $1)`, event).Scan(&published, &there)
	switch {
	case err != nil:
		return err
	case published:
		return ErrPublished
	case force:
		return nil
	case !there:
		return ErrUnknownEvent
	}
	return ErrNotRefused
}

// carriedOut tells of a skip k that it came to something: the event has a mark,
// or, as one that stood in the WAL alone, was passed over and told.
const carriedOut = `(EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = k.event_id)
	OR EXISTS (SELECT FROM waybill.incidents i WHERE i.part = 'relay' AND i.kind = 'event_skipped' AND i.subject = k.event_id::text))`

// UndoSkip takes back what AskSkip noted, which is returned. What is carried out
// is ErrPublished, what was never asked for ErrNotAsked.
func UndoSkip(ctx context.Context, db *pgxpool.Pool, event uuid.UUID) (was Skip, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
		if was, err = findSkip(ctx, tx, event); errors.Is(err, pgx.ErrNoRows) {
			return ErrNotAsked
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM waybill.outbox_skips k WHERE event_id = $1 AND NOT `+carriedOut, event)
		if err == nil && tag.RowsAffected() == 0 {
			return ErrPublished
		}
		return err
	})
	if err != nil {
		return Skip{}, fmt.Errorf("take back that event %s is given up: %w", event, err)
	}
	return was, nil
}

// readSkips lists those of which nothing has come yet: the event is still
// refused, or stands behind others without a mark. Of one that is in no table
// nothing may ever be heard; it is listed for a day.
func readSkips(ctx context.Context, db *pgxpool.Pool) ([]Skip, error) {
	rows, err := db.Query(ctx, `SELECT k.event_id, k.reason, k.asked_by, k.asked_at FROM waybill.outbox_skips k
		WHERE EXISTS (SELECT FROM waybill.outbox_stopped s WHERE s.event_id = k.event_id)
			OR NOT `+carriedOut+` AND (k.asked_at > now() - interval '1 day' OR EXISTS (SELECT FROM waybill.outbox_events e WHERE e.id = k.event_id))
		ORDER BY k.asked_at LIMIT $1`, listLimit)
	if err != nil {
		return nil, fmt.Errorf("list pending skips: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Skip])
	if err != nil {
		return nil, fmt.Errorf("list pending skips: %w", err)
	}
	return list, nil
}
