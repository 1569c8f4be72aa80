package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/outbox"
)

// Polling reads the rows without a mark, all of them each time, in an order
// that is every key's own. It keeps no cursor: a row may commit after others
// whose ids are higher, and a cursor past those would never see it. What
// bounds the work is the floor: below the oldest transaction that was open
// when the last sweep began, nothing new can appear.
//
// The order within a key holds if a key's writers exclude each other, as they
// do when each locks its aggregate's row before it adds events: of two events
// of a key the later one is then never visible without the earlier one.

var errLockTaken = errors.New("another relay polls")

// pollSession lasts as long as a connection that holds the advisory lock.
func (r *Relay) pollSession(ctx context.Context) (moved bool, err error) {
	conn, err := r.lock(ctx)
	if err != nil {
		return false, unlessDone(ctx, err)
	}
	defer closeConn(ctx, conn)
	client, err := r.newClient()
	if err != nil {
		return false, err
	}
	defer client.Close()
	r.tellLeftOver(ctx)
	s := newSession(r, nil, client)
	s.ledger.flying = map[uuid.UUID]struct{}{}
	err = s.run(ctx, func(ctx context.Context) error { return s.reader.poll(ctx, conn) })
	r.careful = s.marker.done == 0 && err != nil
	return !r.careful, err
}

// tellLeftOver tells of a slot that nobody needs while the relay polls, and that
// keeps the server from ever dropping WAL. That it cannot be told must not stop
// events.
func (r *Relay) tellLeftOver(ctx context.Context) {
	var active bool
	var kept string
	err := r.db.QueryRow(ctx, `SELECT active, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn))
		FROM pg_replication_slots WHERE slot_name = $1 AND restart_lsn IS NOT NULL`, r.cfg.Slot).Scan(&active, &kept)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		r.log.WarnContext(ctx, "look for a slot that is left over", "error", err)
	case active:
		r.log.WarnContext(ctx, "another relay reads the same outbox by its slot: what both find is published twice; run one kind", "slot", r.cfg.Slot)
	default:
		text := fmt.Sprintf("the relay polls, and its slot %s of another mode is left over: it keeps %s of WAL, and more each day; drop it: SELECT pg_drop_replication_slot('%s')", r.cfg.Slot, kept, r.cfg.Slot)
		r.log.WarnContext(ctx, "a replication slot is left over: it keeps WAL for ever; drop it", "slot", r.cfg.Slot, "kept", kept)
		r.incident(ctx, "slot_left_over", r.cfg.Slot, text)
	}
}

// lock takes the place of the only relay, on a connection of its own, which
// also hears the writers.
func (r *Relay) lock(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, r.db.Config().ConnConfig.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect for the relay's lock: %w", err)
	}
	var ours bool
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`, "waybill relay "+r.cfg.Slot).Scan(&ours)
	if err == nil && ours {
		_, err = conn.Exec(ctx, `LISTEN `+outbox.Channel)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("take the relay's lock: %w", err)
	case !ours:
		err = errLockTaken
	default:
		return conn, nil
	}
	closeConn(ctx, conn)
	return nil, err
}

func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// poll sweeps the table until ctx ends or the lock is lost.
func (r *reader) poll(ctx context.Context, conn *pgx.Conn) error {
	wake := make(chan struct{}, 1)
	g, ctx := errgroup.WithContext(ctx)
	r.ctx = ctx
	g.Go(func() error {
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return fmt.Errorf("hold the relay's lock: %w", err)
			}
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	g.Go(func() error { return r.sweeps(ctx, wake) })
	return g.Wait()
}

// firstPoll is how soon the table is looked at again after events were found
// or announced. A notification may come before its transaction's commit.
const firstPoll = 2 * time.Millisecond

func (r *reader) sweeps(ctx context.Context, wake <-chan struct{}) error {
	floor, err := r.s.floor(ctx)
	if err != nil {
		return err
	}
	r.s.log.InfoContext(ctx, "polling the outbox's table")
	wait := firstPoll
	var noted time.Time
	complete := false
	for {
		found, done, err := r.sweep(ctx, &floor)
		if err != nil {
			return err
		}
		if done && !complete {
			if err := r.s.setComplete(ctx); err != nil {
				return err
			}
			complete = true
		}
		// What is kept back is below it too, and found by the floor that is
		// written down.
		if done && r.s.stopped.count() == 0 && time.Since(noted) > floorEvery {
			noted = time.Now()
			if err := r.s.setFloor(ctx, floor); err != nil {
				return err
			}
		}
		if r.due() {
			if err := r.mend(ctx); err != nil {
				return err
			}
		}
		if found {
			wait = firstPoll
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-wake:
			wait = firstPoll
		case <-t.C:
			wait = min(2*wait, r.s.cfg.PollInterval)
		}
		t.Stop()
	}
}

// sweepWait bounds the wait for the marks of a sweep: a partition that takes
// nothing must not keep the others waiting.
const sweepWait = 300 * time.Millisecond

// sweep publishes every row without a mark that is not on its way yet. It tells
// whether all is marked by then; the floor is then such that everything below
// it is, or kept back.
func (r *reader) sweep(ctx context.Context, floor *int64) (found, done bool, err error) {
	onTheirWay := r.s.ledger.inTheAir() // before the rows are read: they may be marked meanwhile
	var below int64
	err = r.s.db.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`).Scan(&below)
	if err != nil {
		return false, false, fmt.Errorf("ask for the oldest transaction: %w", err)
	}
	err = r.unmarked(ctx, *floor, "", func(row *row, from origin) (bool, error) {
		if _, ok := onTheirWay[row.id()]; ok {
			return true, nil
		}
		n := r.s.ledger.begin(from.upTo, time.Time{})
		before := r.kept
		if err := r.publish(n, row, true); err != nil {
			return false, err
		}
		r.s.ledger.commit(n, 0)
		found = found || r.kept == before // kept-back ones are no news
		return true, nil
	})
	if err == nil {
		done, err = within(ctx, sweepWait, r.s.ledger.waitMarked)
	}
	if err != nil {
		return found, false, fmt.Errorf("poll: %w", err)
	}
	if done {
		*floor = below
	}
	return found, done, nil
}
