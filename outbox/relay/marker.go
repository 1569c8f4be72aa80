package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// mark writes down what the broker acknowledged and then confirms to Postgres.
// The order matters: an event confirmed but not marked would look unpublished
// for ever. It returns once the ledger is closed and empty of marks, or at the
// first error, which also ends the session.
func (s *session) mark(ctx context.Context) error {
	for {
		<-s.ledger.wake
		marks, closed := s.ledger.take()
		if len(marks) > 0 {
			if err := s.write(ctx, marks); err != nil {
				err = fmt.Errorf("mark events as published: %w", err)
				s.ledger.fail(err)
				if closed {
					return err
				}
				continue // the session ends; wait for its close
			}
		}
		s.marks += len(marks)
		if end := s.ledger.written(marks); end != 0 {
			s.stream.Confirm(end)
		}
		s.metrics.inFlight.Set(float64(s.ledger.inFlight()))
		if closed {
			return nil
		}
		pause(ctx, s.cfg.MarkInterval)
	}
}

var publishedColumns = []string{"id", "published_at", "log_partition", "log_offset"}

func (s *session) write(ctx context.Context, marks []mark) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	now := time.Now()
	i := -1
	_, err := s.db.CopyFrom(ctx, pgx.Identifier{"waybill", "outbox_published"}, publishedColumns,
		pgx.CopyFromFunc(func() ([]any, error) {
			if i++; i == len(marks) {
				return nil, nil
			}
			m := &marks[i]
			// Not as a uuid.UUID, which would go through its text.
			return []any{pgtype.UUID{Bytes: m.id, Valid: true}, now, m.partition, m.offset}, nil
		}))
	return err
}
