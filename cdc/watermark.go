package cdc

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// offer puts c's watermark into the WAL, by committing the transaction that is
// open on conn.
func (s *session) offer(ctx context.Context, conn *pgconn.PgConn, c *chunk) error {
	// Before the commit: the reader may meet the watermark at once.
	s.offered.Store(c.token, c)
	mark := "SELECT pg_logical_emit_message(true, '" + messagePrefix + "', '" + c.token + "'); COMMIT"
	if _, err := conn.Exec(ctx, mark).ReadAll(); err != nil {
		s.offered.Delete(c.token)
		return fmt.Errorf("watermark: %w", err)
	}
	return nil
}

// fence waits until everything that was committed before is published.
func (s *session) fence(ctx context.Context, conn *pgconn.PgConn) error {
	if _, err := begin(ctx, conn); err != nil {
		return err
	}
	c := newChunk(nil, visibility{})
	if err := s.offer(ctx, conn, c); err != nil {
		return err
	}
	return s.await(ctx, c)
}

// await waits until c is published.
func (s *session) await(ctx context.Context, c *chunk) error {
	defer s.offered.Delete(c.token)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.placed:
	}
	if c.void {
		return errSuperseded
	}
	return nil
}
