package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrInUse is of a queue that cannot be removed: it has messages or dead
// letters, or another queue's dead go to it.
var ErrInUse = errors.New("queue is in use")

// Remove removes a queue that is empty. Its dedupe ids and how far topics were
// put into it go with it: one that is declared by the same name begins anew.
func Remove(ctx context.Context, db *pgxpool.Pool, tenant, name string) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		var id int32
		// Whoever sends holds the row by its foreign key: it is locked, so that
		// none come between the look and the end.
		err := tx.QueryRow(ctx, `SELECT id FROM waybill.queues WHERE tenant = $1 AND name = $2 FOR UPDATE`, tenant, name).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrUnknown
		}
		if err != nil {
			return err
		}
		if err := unused(ctx, tx, id); err != nil {
			return err
		}
		for _, table := range []string{"queue_dedupe", "queue_stirred", "queue_feeds"} {
			if _, err := tx.Exec(ctx, `DELETE FROM waybill.`+table+` WHERE queue = $1`, id); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `DELETE FROM waybill.queues WHERE id = $1`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove queue %s: %w", name, err)
	}
	return nil
}

func unused(ctx context.Context, tx pgx.Tx, id int32) error {
	var messages, dead bool
	var from *string
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.queue_messages WHERE queue = $1),
		EXISTS (SELECT FROM waybill.queue_dead WHERE queue = $1),
		(SELECT min(name) FROM waybill.queues WHERE dead_letter = $1)`, id).Scan(&messages, &dead, &from)
	switch {
	case err != nil:
		return err
	case messages:
		return fmt.Errorf("%w: it has messages: purge it first", ErrInUse)
	case dead:
		return fmt.Errorf("%w: it has dead letters: redrive or drop them first", ErrInUse)
	case from != nil:
		return fmt.Errorf("%w: the dead of queue %s go to it: give that one other settings first", ErrInUse, *from)
	}
	return nil
}
