package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/broker/producer"
	"github.com/waybillhq/waybill/pg/wal"
)

// drainTimeout bounds the wait for the broker's word when the relay stops.
const drainTimeout = 5 * time.Second

// markTimeout bounds the wait for the last marks when the relay stops.
const markTimeout = 5 * time.Second

// unknownTopic is for how long a topic may be unknown before its events are
// kept back: brokers take a moment to tell each other of a new one.
const unknownTopic = 3 * time.Second

// session is what lives as long as the relay's place: a replication connection
// or, when polling, an advisory lock. The reader fills the ledger and queues
// records, the broker's acknowledgements come back to the ledger, the marker
// writes them down and confirms.
type session struct {
	*Relay
	stream   *wal.Stream // nil when polling
	client   *kgo.Client
	producer *producer.Producer[tag]
	once     *transactions // nil unless exactly once
	ledger   *ledger
	stopped  stopped
	marker   marker
	reader   reader
}

func newSession(r *Relay, stream *wal.Stream, client *kgo.Client) *session {
	s := &session{Relay: r, stream: stream, client: client, ledger: newLedger(r.cfg.MaxUnmarked, r.cfg.MaxBytes, r.careful)}
	cfg := producer.Config[tag]{
		Acked: s.acknowledged, Refused: s.refused, Failed: s.ledger.fail,
		MaxBatchBytes: r.cfg.MaxBatchBytes, MaxRequests: r.cfg.MaxRequests, UnknownTopic: unknownTopic, Logger: r.log,
	}
	if r.cfg.ExactlyOnce {
		s.once = &transactions{s: s}
		cfg.TransactionalID, cfg.Acked = r.position, s.once.acknowledged
	}
	s.producer = producer.New(client, cfg)
	s.marker.s = s
	s.reader = newReader(s)
	s.stopped.places = map[place]*stopState{}
	return s
}

// run relays by read until ctx ends (nil) or something breaks.
func (s *session) run(ctx context.Context, read func(context.Context) error) error {
	defer s.producer.Close()
	if s.once != nil {
		if err := s.once.begin(ctx); err != nil {
			return unlessDone(ctx, err)
		}
	}
	if err := s.loadStopped(ctx); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return read(gctx) })
	g.Go(func() error { return s.watch(gctx) })
	if !s.cfg.keeps() {
		g.Go(func() error { return s.mendInPlace(gctx) })
	}
	if s.once != nil {
		g.Go(func() error { return s.once.run(gctx) })
	}
	// The marker outlives ctx: it ends once the reader has ended and what was
	// in flight is acknowledged and marked, or too late.
	markCtx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	marked := make(chan error, 1)
	go func() { marked <- s.marker.run(markCtx) }()
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
	s.producer.Close() // nothing is acknowledged after this
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
	err := s.producer.Flush(ctx)
	if s.once != nil && err == nil {
		err = s.once.end(ctx)
	}
	if err != nil {
		s.log.WarnContext(ctx, "stopped before the broker answered; those events will be sent again", "error", err)
	}
}

// confirm tells Postgres what it may forget.
func (s *session) confirm(end wal.LSN) {
	if s.stream != nil {
		s.stream.Confirm(end)
	}
}

// acknowledged is the broker's word on a batch.
func (s *session) acknowledged(b *batch) {
	s.metrics.published(b, s.ledger)
	s.ledger.acknowledge(b)
}

// refused is the broker's word on a record it will not take. Where there are
// marks, what waits behind it needs no memory: it stands in the table without.
func (s *session) refused(r producer.Refusal[tag]) {
	if s.once != nil && r.Partition == s.once.place {
		s.ledger.fail(fmt.Errorf("write the position: %w", r.Err))
		return
	}
	at := stop{place: place{r.Partition.Topic.Name, r.Partition.Index}, event: r.Tag.id, err: r.Err, partitions: r.Partition.Topic.Count()}
	if s.cfg.keeps() {
		r.Partition.Close()
		at.tags = r.Partition.Discard()
	}
	s.ledger.stop(at)
}
