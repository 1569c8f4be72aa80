package clickhouse

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/projection"
)

// Write has the events in ClickHouse before it returns. tx is the consumer's,
// and nothing is done in it. Where ClickHouse does not answer it tries on until
// ctx ends, and fails with ErrUnavailable.
func (s *Store) Write(ctx context.Context, _ pgx.Tx, es []projection.Event) error {
	if len(es) == 0 {
		return nil
	}
	for _, e := range es {
		// DateTime64 knows no others. It is this event's fault, and not
		// ClickHouse's: it stands alone in the end, and is parked.
		if y := e.Time.UTC().Year(); y < 1900 || y > 2261 {
			return fmt.Errorf("event %s: ClickHouse keeps no time like %s", e.ID, e.Time)
		}
	}
	for {
		mine, err := s.joint.do(ctx, es, s.cfg.Linger, s.persist)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		case mine:
			return err
		}
		// Whoever inserted for us gave up, as their partition was taken: ours is not.
	}
}

// Tries are some time apart, and ever longer.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// persist inserts until it succeeds or ctx ends.
func (s *Store) persist(ctx context.Context, es []projection.Event) error {
	token := tokenOf(es)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := s.insert(ctx, token, es)
		if err == nil {
			s.tell(ctx, nil)
			return nil
		}
		s.tell(ctx, err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// insert writes the events as one block. The token has ClickHouse know a block
// that it has already, where an answer was lost; in the end the table's order
// decides, which knows each event.
func (s *Store) insert(ctx context.Context, token string, es []projection.Event) error {
	ctx = driver.Context(ctx, driver.WithSettings(driver.Settings{"insert_deduplicate": 1, "insert_deduplication_token": token}))
	b, err := s.conn.PrepareBatch(ctx, `INSERT INTO events (id, tenant, type, subject, sequence, time, source, data)`)
	if err != nil {
		return fmt.Errorf("begin an insert: %w", err)
	}
	defer func() { _ = b.Close() }() // after Send it does nothing
	for _, e := range es {
		if err := b.Append(e.ID, e.Tenant, e.Type, e.Subject, e.Sequence, e.Time.UTC(), e.Source, string(e.Data)); err != nil {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
	}
	if err := b.Send(); err != nil {
		return fmt.Errorf("insert %d events: %w", len(es), err)
	}
	return nil
}

// tokenOf names a set of events, in whatever order they are.
func tokenOf(es []projection.Event) string {
	ids := make([]uuid.UUID, len(es))
	for i, e := range es {
		ids[i] = e.ID
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for _, id := range ids {
		h.Write(id[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// tell says once that ClickHouse is away, and once that it is back.
func (s *Store) tell(ctx context.Context, err error) {
	s.joint.mu.Lock()
	was := s.down
	s.down = err != nil
	s.joint.mu.Unlock()
	switch {
	case err != nil && !was && ctx.Err() == nil:
		s.cfg.Logger.WarnContext(ctx, "waiting for ClickHouse", "error", err)
	case err == nil && was:
		s.cfg.Logger.InfoContext(ctx, "ClickHouse is back")
	}
}
