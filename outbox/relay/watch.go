package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/wal"
)

// Intervals of the watch.
const (
	floorEvery     = time.Second
	heartbeatEvery = 10 * time.Second
)

// heartbeat is the prefix of the message that keeps the slot moving.
const heartbeat = "waybill.heartbeat"

// floorMark is a moment: all transactions below xid had ended, and their
// commits stood before lsn.
type floorMark struct {
	xid int64
	lsn wal.LSN
}

// watch looks after the slot beside the stream until ctx ends. What it cannot
// do now it does later: events do not wait for it.
func (s *session) watch(ctx context.Context) error {
	if s.stream == nil {
		return nil
	}
	tick := time.NewTicker(floorEvery)
	defer tick.Stop()
	var marks []floorMark
	var beat time.Time
	status := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var err error
		if s.cfg.tables() {
			marks, err = s.raiseFloor(ctx, marks)
		}
		if time.Since(beat) >= heartbeatEvery {
			beat = time.Now()
			err = errors.Join(err, s.beat(ctx))
			status = s.watchWAL(ctx, status)
		}
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "look after the slot", "error", err)
		}
	}
}

// raiseFloor writes down below which xid everything is marked. A partition
// that keeps events back holds the floor where it is.
func (s *session) raiseFloor(ctx context.Context, marks []floorMark) ([]floorMark, error) {
	var m floorMark
	var lsn string
	err := s.db.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_current_wal_insert_lsn()::text`).Scan(&m.xid, &lsn)
	if err == nil {
		err = m.lsn.Scan(lsn)
	}
	if err != nil {
		return marks, fmt.Errorf("ask for the oldest transaction: %w", err)
	}
	confirmed := s.stream.Confirmed()
	s.metrics.position(m.lsn, confirmed)
	if len(marks) < 60 {
		marks = append(marks, m)
	}
	reached := 0
	for reached < len(marks) && marks[reached].lsn <= confirmed {
		reached++
	}
	if reached == 0 {
		return marks, nil
	}
	if s.stopped.count() == 0 {
		if err := s.setFloor(ctx, marks[reached-1].xid); err != nil {
			return marks, err
		}
	}
	return marks[reached:], nil
}

func (s *session) setFloor(ctx context.Context, xid int64) error {
	_, err := s.db.Exec(ctx, `UPDATE waybill.outbox_slots SET published_below = $2, server = (SELECT system_identifier FROM pg_control_system())
		WHERE slot = $1 AND complete_at IS NOT NULL AND (published_below < $2 OR server <> (SELECT system_identifier FROM pg_control_system()))`,
		s.cfg.Slot, xid)
	if err != nil {
		return fmt.Errorf("note how far all is published: %w", err)
	}
	return nil
}

// floor is below which xid everything is marked, as far as this server knows.
func (s *session) floor(ctx context.Context) (xid int64, err error) {
	err = s.db.QueryRow(ctx, `SELECT published_below FROM waybill.outbox_slots
		WHERE slot = $1 AND server = (SELECT system_identifier FROM pg_control_system())
			AND published_below <= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`, s.cfg.Slot).Scan(&xid)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("look how far all is published: %w", err)
	}
	return xid, nil
}

// beat writes a message to the WAL. Without it the slot of a database where
// nothing happens would hold back that of its busy neighbours.
func (s *session) beat(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `SELECT pg_logical_emit_message(false, $1, '')`, heartbeat)
	if err != nil {
		return fmt.Errorf("write a heartbeat to the WAL: %w", err)
	}
	return nil
}

// watchWAL tells once when the server is about to give the slot up.
func (s *session) watchWAL(ctx context.Context, before string) (status string) {
	err := s.db.QueryRow(ctx, `SELECT coalesce(wal_status, '') FROM pg_replication_slots WHERE slot_name = $1`, s.cfg.Slot).Scan(&status)
	if err != nil {
		return before
	}
	if status == "unreserved" && before != status {
		s.log.ErrorContext(ctx, "the replication slot holds more WAL than the server will keep and is lost at its next checkpoint, unless the relay catches up: raise max_slot_wal_keep_size")
		s.incident(ctx, "slot_unreserved", s.cfg.Slot, "the slot holds more WAL than max_slot_wal_keep_size")
	}
	return status
}
