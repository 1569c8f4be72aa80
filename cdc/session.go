package cdc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/pg/wal"
)

// drainTimeout bounds the wait for the broker's word when a session ends.
const drainTimeout = 5 * time.Second

// session is what lives as long as one replication connection. Three work in
// it: the reader makes events of what the stream brings; the reconciler keeps
// publication and tables to the configuration; the snapshotter reads tables and
// hands what it read to the reader.
type session struct {
	*CDC
	stream *wal.Stream
	client *kgo.Client
	flight *flight

	reconciling sync.Mutex
	drifted     bool                                // told, under reconciling
	watched     atomic.Pointer[map[string]*watched] // by schema.table; replaced as a whole
	work        chan struct{}                       // a snapshot may be due
	offered     sync.Map                            // token -> *chunk: what the snapshotter read, for the reader

	// Of the reader alone:
	ctx     context.Context // the decoder's callbacks are given none
	sending context.Context // what is on its way when the reader ends is still wanted
	tx      *tx
	then    after // what waits for tx
	bound   map[uint32]*binding
	missed  map[string]string // tables of which tx's changes could not be told, and why

	told     map[string]time.Time // when it was last said that values of a table were left out
	timeline int64

	moved atomic.Bool // the broker took something
}

// watched is a table as the reconciler last found it. It is replaced when
// something changes that events or snapshots rest on.
type watched struct {
	Table
	facts     *facts
	suspended bool
	tracker   *tracker
}

// session publishes over one replication connection until it breaks, or until
// ctx ends (nil). It tells whether anything came through.
func (c *CDC) session(ctx context.Context) (moved bool, err error) {
	if err := c.ensureSlot(ctx); err != nil {
		return false, unlessDone(ctx, err)
	}
	stream, err := wal.Open(ctx, wal.Config{
		Conn: printer(&c.db.Config().ConnConfig.Config), Slot: c.cfg.Slot, Publication: c.cfg.Publication,
		Messages: true, Text: true,
	})
	if err != nil {
		return false, unlessDone(ctx, err)
	}
	defer closeStream(ctx, stream)
	client, err := c.newClient()
	if err != nil {
		return false, err
	}
	defer client.Close()
	s := &session{
		CDC: c, stream: stream, client: client, flight: newFlight(c.cfg.MaxInFlight, c.cfg.MaxBytes, stream.Confirm),
		work: make(chan struct{}, 1), bound: map[uint32]*binding{}, missed: map[string]string{},
		told: map[string]time.Time{},
	}
	s.watched.Store(&map[string]*watched{})
	err = s.run(ctx)
	c.unusable = errors.Is(err, wal.ErrPublicationMissing)
	c.learnLimit(ctx, err)
	return s.moved.Load(), err
}

func (c *CDC) newClient() (*kgo.Client, error) {
	client, err := c.client(
		kgo.ProducerLinger(c.cfg.Linger),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(int32(min(c.limit+batchOverhead, math.MaxInt32))),
		// Above what flight lets through, so that the client never blocks.
		kgo.MaxBufferedRecords(c.cfg.MaxInFlight+1),
	)
	if err != nil {
		return nil, fmt.Errorf("broker client: %w", err)
	}
	return client, nil
}

// run works until ctx ends (nil) or something breaks.
func (s *session) run(ctx context.Context) error {
	// Only now: while we read the slot, nobody makes it anew or publishes
	// otherwise.
	err := s.noteSlot(ctx)
	if err == nil {
		s.timeline, err = s.readTimeline(ctx)
	}
	if err == nil {
		err = s.reconcile(ctx)
	}
	if err != nil {
		return unlessDone(ctx, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.read(gctx) })
	g.Go(func() error { return s.watch(gctx) })
	g.Go(func() error { return s.snapshots(gctx) })
	g.Go(func() error {
		select {
		case <-gctx.Done():
			return nil
		case <-s.flight.failed:
			return s.flight.failure()
		}
	})
	err = g.Wait()
	if s.flight.failure() == nil {
		// Also when the stream broke: what it had sent would be sent again.
		s.drain(ctx)
	}
	defer s.metrics.inFlight.Set(0)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return err
}

// drain waits for the broker's answers, bounded.
func (s *session) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := s.client.Flush(ctx); err != nil {
		s.log.WarnContext(ctx, "stopped before the broker answered; those changes will be sent again", "error", err)
	}
}

// read makes events of the stream.
func (s *session) read(ctx context.Context) error {
	s.ctx, s.sending = ctx, context.WithoutCancel(ctx)
	decoder := wal.NewDecoder(s)
	s.log.InfoContext(ctx, "reading changes from the WAL")
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
// Otherwise quiet tables beside busy ones would keep their WAL for ever.
func (s *session) keepalive(end wal.LSN) {
	s.flight.idle(func() { s.stream.Confirm(end) })
	s.metrics.inFlight.Set(float64(s.flight.inFlight()))
	s.metrics.position(end, s.stream.Confirmed())
}

// watch keeps publication and tables to the configuration.
func (s *session) watch(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-s.kick:
		}
		if err := s.reconcile(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "could not compare tables with the configuration; the stream goes on", "error", err, "again_in", s.cfg.Check)
		}
		s.wake()
	}
}

// wake has the snapshotter look whether something is due.
func (s *session) wake() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// closeStream is bounded: the server may have gone without a word.
func closeStream(ctx context.Context, s *wal.Stream) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	s.Close(ctx)
}

// unlessDone is err, or nil if ctx has ended, which then is the cause.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
