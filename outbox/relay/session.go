package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/pg/wal"
)

// drainTimeout bounds the wait for the broker's word when the relay stops.
const drainTimeout = 5 * time.Second

// markTimeout bounds the wait for the last marks when the relay stops.
const markTimeout = 5 * time.Second

// session is what lives as long as one replication connection. The reader
// fills the ledger, the broker's acknowledgements tick it off, the marker
// writes the marks and confirms.
type session struct {
	*Relay
	stream *wal.Stream
	client *kgo.Client
	ledger *ledger

	// Of the reader alone:
	ctx     context.Context // the decoder's callbacks are given none
	sending context.Context // what is on its way when the reader ends is still wanted
	tx      *commit
	columns columns
	schemas *schemaIDs
	stuck   stuck
	read    []uuid.UUID // of tx, while something is stuck

	marks int // of the marker, until it ends: how many were written
}

func newSession(r *Relay, stream *wal.Stream, client *kgo.Client) *session {
	return &session{
		Relay: r, stream: stream, client: client, ledger: newLedger(r.cfg.MaxUnmarked, r.cfg.MaxBytes, r.careful),
		schemas: newSchemaIDs(r.db, r.registry), stuck: r.stuck,
	}
}

// run relays until ctx ends (nil) or something breaks.
func (s *session) run(ctx context.Context, backfill bool) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.readAll(gctx, backfill) })
	// The marker outlives ctx: it ends once the reader has ended and what was
	// in flight is acknowledged and marked, or too late.
	markCtx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	marked := make(chan error, 1)
	go func() { marked <- s.mark(markCtx) }()
	g.Go(func() error {
		select {
		case <-gctx.Done():
			return nil
		case <-s.ledger.failed:
			return s.ledger.failure()
		}
	})
	err := g.Wait()
	if s.ledger.failure() == nil {
		// Also when the reader broke: what it had sent would be sent again,
		// and again if it breaks at the same place the next time.
		s.drain(ctx)
	}
	s.ledger.close()
	late := time.AfterFunc(markTimeout, giveUp)
	defer late.Stop()
	// Whatever is still out belongs to no session any more.
	defer s.metrics.inFlight.Set(0)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return errors.Join(err, <-marked)
}

// drain waits for the broker's answers, bounded.
func (s *session) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := s.client.Flush(ctx); err != nil {
		s.log.WarnContext(ctx, "stopped before the broker answered; those events will be sent again", "error", err)
	}
}

func (s *session) readAll(ctx context.Context, backfill bool) error {
	s.ctx, s.sending = ctx, context.WithoutCancel(ctx)
	defer s.ledger.abandonOpen()
	if backfill {
		if err := s.backfill(ctx); err != nil {
			return err
		}
	}
	decoder := wal.NewDecoder(s)
	s.log.InfoContext(ctx, "reading the outbox from the WAL")
	for {
		frame, err := s.stream.Next(ctx)
		if err != nil {
			return err
		}
		if frame.Data == nil {
			s.keepalive(frame.WALEnd)
		} else if err := decoder.Decode(frame.Data); err != nil {
			return err
		}
	}
}

// keepalive confirms the server's position while nothing is in flight.
// Otherwise a quiet outbox beside busy tables would keep their WAL for ever.
func (s *session) keepalive(end wal.LSN) {
	if s.ledger.idle() {
		s.stream.Confirm(end)
	}
	s.metrics.position(end, s.stream.Confirmed())
}

// Begin opens an entry in the ledger.
func (s *session) Begin(t wal.Begin) error {
	s.tx = s.ledger.begin(t.CommitTime)
	s.read = s.read[:0]
	return nil
}

// Insert hands one outbox row to the broker. It waits while too much is in
// flight, which holds back the socket and with it the server.
func (s *session) Insert(rel *wal.Relation, row []wal.Value) error {
	if s.columns.relation != rel {
		c, err := columnsOf(rel)
		if err != nil {
			return err
		}
		s.columns = c
	}
	return s.publish(s.tx, s.columns.row(row))
}

// Commit closes the entry.
func (s *session) Commit(end wal.LSN) error {
	s.ledger.commit(s.tx, end)
	s.tx = nil
	return nil
}

// publish sees one event to the broker.
func (s *session) publish(tx *commit, r row) error {
	id := r.id()
	s.noteRead(id)
	switch {
	case s.stuck.before[id]:
		return nil
	case id == s.stuck.id:
		return s.publishAlone(tx, r)
	}
	return s.produce(tx, r)
}

// produce gives one event to the broker and counts it into tx.
func (s *session) produce(tx *commit, r row) error {
	id, err := s.schemas.id(s.ctx, r.fingerprint())
	if err != nil {
		return s.stuckAt(r.id(), err)
	}
	rec, err := newRecord(r, id)
	if err != nil {
		return s.stuckAt(r.id(), err)
	}
	if err := s.ledger.add(s.ctx, tx, rec.tag.size); err != nil {
		return err
	}
	rec.tag.commit = tx
	s.client.Produce(s.sending, &rec.Record, s.acknowledged)
	return nil
}

// acknowledged is the broker's word on one record.
func (s *session) acknowledged(rec *kgo.Record, err error) {
	t := rec.Context.(*tag)
	if err != nil {
		s.ledger.fail(&stuckError{t.id, fmt.Errorf("publish to topic %q: %w", rec.Topic, err)})
		return
	}
	s.metrics.published(rec.Topic, t.commit.time)
	s.ledger.acknowledge(mark{commit: t.commit, id: t.id, size: t.size, partition: rec.Partition, offset: rec.Offset})
	t.recycle()
}
