package cdc

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
)

// waitVisible waits until all transactions that are open now have ended. Those
// that begin later are committed after the tracker began to listen, and so is
// told of all that a chunk might miss.
func (s *session) waitVisible(ctx context.Context, w *watched) error {
	slow := time.AfterFunc(10*time.Second, func() {
		s.log.WarnContext(ctx, "the snapshot of a table waits for transactions that were open before it; the longest is the first by xact_start in pg_stat_activity", "table", w.String())
	})
	defer slow.Stop()
	var from uint64
	for {
		v, err := s.visibility(ctx)
		if err != nil {
			return err
		}
		if from == 0 {
			from = v.xmax
		}
		w.tracker.forget(v)
		if v.xmin >= from {
			return nil
		}
		pause(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (s *session) visibility(ctx context.Context) (visibility, error) {
	var text string
	if err := s.db.QueryRow(ctx, `SELECT pg_current_snapshot()::text`).Scan(&text); err != nil {
		return visibility{}, fmt.Errorf("look which transactions are open: %w", err)
	}
	return parseVisibility(text)
}

// markEnds notes up to where the topic is to be swept. What was committed before
// the snapshot was asked for has to be in it: the stream may be behind, with
// rows still to come that a table, truncated or made anew, has no more.
func (s *session) markEnds(ctx context.Context, conn *pgxpool.Conn, w *watched, st *state) error {
	if err := s.fence(ctx, conn.Conn().PgConn()); err != nil {
		return fmt.Errorf("snapshot of %s: %w", w, err)
	}
	to, err := s.topicEnds(ctx, w.Topic)
	if err != nil {
		return err
	}
	return st.sweepTo(ctx, s.db, s.cfg.Slot, to)
}

// topicEnds is where each partition of a topic ends.
func (s *session) topicEnds(ctx context.Context, topic string) (map[int32]int64, error) {
	ends, err := kadm.NewClient(s.client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("look where topic %s ends: %w", topic, err)
	}
	to := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) { to[o.Partition] = o.Offset })
	return to, nil
}
