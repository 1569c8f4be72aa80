package cdc

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A process that publishes holds the slot only while it reads. Between two tries,
// as while the broker is away, nobody does, and a slot that was dropped then
// would come back with the next try, and keep WAL for ever. So each process holds
// a lock for as long as it runs, which Drop must have alone.

const (
	presenceKey = `hashtextextended('waybill cdc at work ' || $1, 0)`
	turnKey     = `hashtextextended('waybill cdc ' || $1, 0)`
)

// bePresent holds the lock until ctx ends, on a connection of its own: the
// server lets go of it when the process dies, however it dies. tried is closed
// once it is held, or could not be had.
func (c *CDC) bePresent(ctx context.Context, tried chan<- struct{}) {
	once := sync.OnceFunc(func() { close(tried) })
	told := false
	for ctx.Err() == nil {
		err := c.holdPresence(ctx, once)
		once()
		if ctx.Err() == nil && !told {
			told = true
			c.log.WarnContext(ctx, "not seen as running by waybill cdc drop, until the database can be reached", "error", err)
		}
		pause(ctx, time.Second)
	}
}

func (c *CDC) holdPresence(ctx context.Context, held func()) error {
	conn, err := pgx.ConnectConfig(ctx, c.db.Config().ConnConfig.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = conn.Close(ctx) // the lock goes with it
	}()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared(`+presenceKey+`)`, c.cfg.Slot); err != nil {
		return err
	}
	held()
	for {
		// None is sent: it returns when the connection breaks, and asks nothing.
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}

// alone has tx hold what processes hold, until it ends, or fails where one runs.
func alone(ctx context.Context, tx pgx.Tx, slot string) error {
	var got bool
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(`+presenceKey+`)`, slot).Scan(&got); err != nil {
		return fmt.Errorf("look whether a process publishes changes: %w", err)
	}
	if !got {
		return fmt.Errorf("slot %s: %w: stop it first, or it would make the slot again", slot, ErrInUse)
	}
	// One that starts now makes the slot after this, not in the middle of it.
	return exec(ctx, tx, `SELECT pg_advisory_xact_lock(`+turnKey+`)`, slot)
}
