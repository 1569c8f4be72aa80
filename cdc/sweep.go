package cdc

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg/wal"
)

// A sweep finds the keys a topic has and its table has not: of rows that went
// while nobody listened. It reads the topic into waybill.cdc_keys, which knows
// of each key whether its last record is a row or a tombstone. Then it looks the live ones up in the
// table, chunk by chunk, under watermarks as any other chunk: a key that is
// missing in the table and has not come back in the stream is deleted in the
// topic.

// sweepState is a row of waybill.cdc_sweeps.
type sweepState struct {
	readTo map[int32]int64
	last   *uuid.UUID
}

func (s *session) sweep(ctx context.Context, conn *pgxpool.Conn, w *watched, st *state) error {
	sw, err := s.openSweep(ctx, st)
	if err != nil {
		return err
	}
	if err := s.readKeys(ctx, w, st, sw); err != nil {
		return fmt.Errorf("read topic %s: %w", w.Topic, err)
	}
	for {
		more, err := s.sweepChunk(ctx, conn, w, st, sw)
		if err != nil {
			return fmt.Errorf("sweep topic %s: %w", w.Topic, err)
		}
		if !more {
			return s.closeSweep(ctx, s.db, st)
		}
	}
}

// openSweep goes on with the sweep of this snapshot, or begins it.
func (s *session) openSweep(ctx context.Context, st *state) (*sweepState, error) {
	sw := &sweepState{readTo: map[int32]int64{}}
	var served int64
	err := s.db.QueryRow(ctx, `SELECT served, read_to, last FROM waybill.cdc_sweeps WHERE slot = $1 AND name = $2`,
		s.cfg.Slot, st.Name).Scan(&served, &sw.readTo, &sw.last)
	if err == nil && served == st.Served {
		return sw, nil
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("look for a sweep of %s: %w", st.Name, err)
	}
	sw = &sweepState{readTo: map[int32]int64{}}
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if err := s.closeSweep(ctx, tx, st); err != nil {
			return err
		}
		return exec(ctx, tx, `INSERT INTO waybill.cdc_sweeps (slot, name, served, read_to) VALUES ($1, $2, $3, $4)`,
			s.cfg.Slot, st.Name, st.Served, sw.readTo)
	})
	return sw, err
}

func (s *session) closeSweep(ctx context.Context, db querier, st *state) error {
	for _, table := range []string{"cdc_keys", "cdc_sweeps"} {
		if _, err := db.Exec(ctx, `DELETE FROM waybill.`+table+` WHERE slot = $1 AND name = $2`, s.cfg.Slot, st.Name); err != nil {
			return fmt.Errorf("forget the sweep of %s: %w", st.Name, err)
		}
	}
	return nil
}

// keysAtOnce bounds the records whose keys are written down together.
const keysAtOnce = 5000

// readKeys reads the topic's keys, up to where it ended when the snapshot
// began, and then what has become of them since: those that the stream has
// deleted need not be deleted again.
func (s *session) readKeys(ctx context.Context, w *watched, st *state, sw *sweepState) error {
	now, err := s.topicEnds(ctx, w.Topic)
	if err != nil {
		return err
	}
	for p := range now {
		if st.SweepTo[p] == 0 { // whatever is in it came with the snapshot
			delete(now, p)
		}
	}
	for _, part := range []struct {
		to    map[int32]int64
		known bool
	}{{st.SweepTo, false}, {now, true}} {
		r, err := s.newTopicReader(w.Topic, sw.readTo, part.to)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		err = s.writeAllKeys(ctx, st, r, part.known)
		r.client.Close()
		if err != nil {
			return err
		}
		sw.readTo = r.at
	}
	return nil
}

func (s *session) writeAllKeys(ctx context.Context, st *state, r *topicReader, known bool) error {
	for !r.done() {
		live, err := r.read(ctx, keysAtOnce)
		if err != nil {
			return err
		}
		if err := s.writeKeys(ctx, st, r.at, live, known); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys writes keys down, only those that are known if so asked.
func (s *session) writeKeys(ctx context.Context, st *state, at map[int32]int64, live map[string]bool, known bool) error {
	digests, keys, alive := make([]uuid.UUID, 0, len(live)), make([][]byte, 0, len(live)), make([]bool, 0, len(live))
	for key, l := range live {
		digests, keys, alive = append(digests, digest(key)), append(keys, []byte(key)), append(alive, l)
	}
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		err := exec(ctx, tx, `WITH read AS (SELECT * FROM unnest($3::uuid[], $4::bytea[], $5::boolean[]) AS r (digest, key, live))
			INSERT INTO waybill.cdc_keys (slot, name, digest, key, live)
			SELECT $1, $2, digest, key, live FROM read r
			WHERE NOT $6 OR EXISTS (SELECT FROM waybill.cdc_keys k WHERE k.slot = $1 AND k.name = $2 AND k.digest = r.digest)
			ON CONFLICT (slot, name, digest) DO UPDATE SET live = excluded.live`, s.cfg.Slot, st.Name, digests, keys, alive, known)
		if err != nil {
			return err
		}
		return exec(ctx, tx, `UPDATE waybill.cdc_sweeps SET read_to = $3 WHERE slot = $1 AND name = $2`, s.cfg.Slot, st.Name, at)
	})
}

// sweepChunk looks up the next live keys. It tells whether there were any.
func (s *session) sweepChunk(ctx context.Context, conn *pgxpool.Conn, w *watched, st *state, sw *sweepState) (more bool, err error) {
	pgc := conn.Conn().PgConn()
	v, err := begin(ctx, pgc)
	if err != nil {
		return false, err
	}
	open := true
	defer func() {
		if open {
			err = errors.Join(err, rollback(ctx, pgc))
		}
	}()
	keys, last, err := s.nextKeys(ctx, conn.Conn(), st, sw)
	if err != nil || len(keys) == 0 {
		return false, err
	}
	missing, err := missingKeys(ctx, conn.Conn(), w, keys)
	if err != nil {
		return false, err
	}
	c := newChunk(w, v)
	if len(missing) > 0 {
		if err := s.deletions(ctx, conn.Conn(), c, missing); err != nil {
			return false, err
		}
	}
	open = false
	if err := s.offer(ctx, pgc, c); err != nil {
		return false, err
	}
	if err := s.await(ctx, c); err != nil {
		return false, err
	}
	if err := st.swept(ctx, s.db, s.cfg.Slot, int64(len(missing))); err != nil {
		return false, err
	}
	sw.last = &last
	_, err = s.db.Exec(ctx, `UPDATE waybill.cdc_sweeps SET last = $3 WHERE slot = $1 AND name = $2`, s.cfg.Slot, st.Name, last)
	return true, err
}

func (s *session) nextKeys(ctx context.Context, conn *pgx.Conn, st *state, sw *sweepState) (keys [][]byte, last uuid.UUID, err error) {
	rows, err := conn.Query(ctx, `SELECT digest, key FROM waybill.cdc_keys
		WHERE slot = $1 AND name = $2 AND live AND ($3::uuid IS NULL OR digest > $3) ORDER BY digest LIMIT $4`,
		s.cfg.Slot, st.Name, sw.last, s.cfg.ChunkRows)
	if err != nil {
		return nil, last, err
	}
	var key []byte
	_, err = pgx.ForEachRow(rows, []any{&last, &key}, func() error {
		keys = append(keys, append([]byte{}, key...))
		return nil
	})
	return keys, last, err
}

// deletions makes c the events of rows of which nothing but the key is known.
func (s *session) deletions(ctx context.Context, conn *pgx.Conn, c *chunk, missing [][]byte) error {
	cols, err := (&chunkReader{conn: conn.PgConn(), table: c.table}).describe(ctx)
	if err != nil {
		return err
	}
	if c.shape, err = s.schemas.shape(ctx, s.db, c.table, cols); err != nil {
		return err
	}
	for _, key := range missing {
		d := change{op: opDelete, beforeKeyOnly: true}
		if parts, ok := splitKey(key, len(c.shape.keys)); ok {
			d.before = make([]wal.Value, len(cols))
			for i := range d.before {
				d.before[i].Kind = wal.Null
			}
			for i, at := range c.shape.keys {
				d.before[at] = wal.Value{Kind: wal.Text, Data: parts[i]}
			}
		}
		c.items = append(c.items, item{key, d})
	}
	return nil
}
