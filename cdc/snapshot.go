package cdc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A snapshot publishes the rows a table has, without stopping the stream and
// without a state of the database being held open for as long as it takes.
//
// It reads the table in chunks by primary key (Andreakis and Papapanagiotou,
// DBLog: A Watermark Based Change-Data-Capture Framework). Each chunk is read
// in a transaction of its own, which before it commits puts a watermark into
// the WAL. When the reader of the stream meets the watermark it publishes the
// chunk there, but for rows whose key the stream has since changed. All that
// the chunk saw stands in the stream before the watermark, so that a row is
// never published after an event that is newer.
//
// DBLog decides what is newer by a second watermark, written before the chunk
// is read. That is not enough in Postgres: a transaction is in the WAL a
// moment before others see it, longer where it waits for a standby, so that a
// chunk may miss what stands before its first watermark. Here the chunk tells
// which transactions it sees, and the reader remembers which changed what; see
// [visibility] and [tracker]. What the tracker cannot know of, because it
// happened before it listened, has to have ended first: waitVisible.
//
// After each chunk the last key is written down, once the broker has
// acknowledged the chunk. Whoever goes on begins there.

// snapshots makes the snapshots that are due, one after the other. A failure of
// one is tried again, and does not hold the stream up.
func (s *session) snapshots(ctx context.Context) error {
	failed := map[string]time.Time{} // when those that failed are tried again
	for ctx.Err() == nil {
		w, st, err := s.nextDue(ctx, failed)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.log.ErrorContext(ctx, "could not look which snapshots are due", "error", err, "again_in", s.cfg.Retry)
			pause(ctx, s.cfg.Retry)
			continue
		case w == nil:
			s.idle(ctx, failed)
			continue
		}
		err = s.snapshot(ctx, w, st)
		if err != nil && !errors.Is(err, errSuperseded) && ctx.Err() == nil {
			failed[w.String()] = time.Now().Add(s.interrupted(ctx, w, err))
		}
	}
	return ctx.Err()
}

// interrupted tells of a snapshot that failed, and when to go on with it.
func (s *session) interrupted(ctx context.Context, w *watched, err error) (again time.Duration) {
	var server *pgconn.PgError
	if errors.As(err, &server) && (server.Code == undefinedColumn || server.Code == undefinedTable) {
		// It changed since the catalog was last looked at.
		s.log.InfoContext(ctx, "a table changed while it was read", "table", w.String(), "error", err)
		s.look()
		return s.cfg.Retry
	}
	again = 10 * s.cfg.Retry
	s.log.ErrorContext(ctx, "a snapshot was interrupted and will go on", "table", w.String(), "error", err, "in", again)
	return again
}

// SQLSTATEs of a query that names what is not there.
const (
	undefinedColumn = "42703"
	undefinedTable  = "42P01"
)

// idle waits until there may be something to do.
func (s *session) idle(ctx context.Context, failed map[string]time.Time) {
	retry := time.Hour
	for _, at := range failed {
		retry = min(retry, time.Until(at))
	}
	t := time.NewTimer(retry)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-s.work:
	case <-t.C:
	}
}

// nextDue gives a table whose snapshot is due, in the order they are
// configured; none is nil.
func (s *session) nextDue(ctx context.Context, failed map[string]time.Time) (*watched, *state, error) {
	states, err := loadStates(ctx, s.db, s.cfg.Slot)
	if err != nil {
		return nil, nil, err
	}
	for _, st := range states {
		s.metrics.snapshot(st)
	}
	now := *s.watched.Load()
	for _, t := range *s.tables.Load() {
		w, st := now[t.String()], states[t.String()]
		if at, ok := failed[t.String()]; ok {
			if time.Now().Before(at) {
				continue
			}
			delete(failed, t.String())
		}
		if w != nil && !w.suspended && st != nil && st.due() {
			return w, st, nil
		}
	}
	return nil, nil, nil
}

func (s *session) snapshot(ctx context.Context, w *watched, st *state) error {
	began := time.Now()
	if st.Served < st.Requested {
		now, err := factsOf(ctx, s.db, w.Table)
		if err != nil {
			return err
		}
		if now == nil {
			return errSuperseded
		}
		if err := st.begin(ctx, s.db, s.cfg.Slot, now.rows); err != nil {
			return err
		}
	}
	s.log.InfoContext(ctx, "reading a table", "table", w.String(), "because", st.Reason, "rows_done", st.RowsRead)
	w.tracker.start()
	defer w.tracker.stop()
	conn, err := s.db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", w, err)
	}
	defer conn.Release()
	if st.Sweep && st.SweepTo == nil {
		if err := s.markEnds(ctx, conn, w, st); err != nil {
			return err
		}
	}
	if err := s.waitVisible(ctx, w); err != nil {
		return err
	}
	if st.Phase == phaseReading {
		if err := s.readTable(ctx, conn, w, st); err != nil {
			return err
		}
	}
	if st.Sweep {
		if err := s.sweep(ctx, conn, w, st); err != nil {
			return err
		}
	}
	if err := st.finish(ctx, s.db, s.cfg.Slot); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "read a table", "table", w.String(), "rows", st.RowsRead, "deleted", st.Deleted,
		"took", time.Since(began).Round(time.Millisecond))
	return nil
}

// chunksAtOnce bounds the chunks on their way: while one waits for its place in
// the stream and for the broker, the next is read.
const chunksAtOnce = 4

func (s *session) readTable(ctx context.Context, conn *pgxpool.Conn, w *watched, st *state) error {
	r := &chunkReader{conn: conn.Conn().PgConn(), table: w, rows: s.cfg.ChunkRows, bytes: s.cfg.ChunkBytes}
	var way []*chunk
	defer func() {
		for _, c := range way {
			s.offered.Delete(c.token)
		}
	}()
	after := st.LastKey
	for {
		c, err := r.read(ctx, after, func(cols []field) (*shape, error) { return s.schemas.shape(ctx, s.db, w, cols) })
		if err != nil {
			return fmt.Errorf("snapshot of %s: %w", w, err)
		}
		if c == nil {
			break
		}
		if err := s.offer(ctx, r.conn, c); err != nil {
			return err
		}
		way, after = append(way, c), c.last
		if len(way) == chunksAtOnce {
			if err := s.settle(ctx, st, way[0]); err != nil {
				return err
			}
			way = way[1:]
		}
	}
	for ; len(way) > 0; way = way[1:] {
		if err := s.settle(ctx, st, way[0]); err != nil {
			return err
		}
	}
	return st.sweeping(ctx, s.db, s.cfg.Slot)
}

// settle waits until a chunk is published and writes down that it is.
func (s *session) settle(ctx context.Context, st *state, c *chunk) error {
	if err := s.await(ctx, c); err != nil {
		return err
	}
	st.LastKey, st.RowsRead = c.last, st.RowsRead+int64(len(c.items))
	s.metrics.snapshot(st)
	return st.progress(ctx, s.db, s.cfg.Slot)
}
