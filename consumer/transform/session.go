package transform

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// session is one client's life: from joining the group to leaving it, or to what
// its transactions cannot go on from.
//
// It is one goroutine's. Rebalances wait from a poll to the end of its
// transaction; when one comes all the same, the transaction is aborted, the
// client goes back to what is committed, and what was read is forgotten here.
type session struct {
	*Group
	tx         *kgo.GroupTransactSession
	pending    map[place][]*item // read and not committed, in order
	holds      map[place]*hold
	paused     map[place]struct{}  // by the client, for their holds
	rebalanced atomic.Bool         // partitions were taken away since the last look
	declared   map[string]struct{} // dead letter topics that are there
	commits    int
	fails      int                  // transactions in a row that infrastructure ended
	told       map[string]time.Time // what the broker answered instead of records
}

const (
	fetchBytes     = 8 << 20
	partitionBytes = 1 << 20
	fetchWait      = 500 * time.Millisecond // a partition that is read again may wait so long for the others' fetch
	sessionTimeout = 10 * time.Second
	heartbeatEvery = 2 * time.Second
	metadataEvery  = 30 * time.Second // until new partitions are seen
	leaveWithin    = 5 * time.Second
)

// session runs until ctx ends, which is no error. It tells whether anything was
// committed.
func (g *Group) session(ctx context.Context, id string) (progress bool, err error) {
	s := &session{
		Group: g, pending: map[place][]*item{}, holds: map[place]*hold{}, paused: map[place]struct{}{},
		declared: map[string]struct{}{}, told: map[string]time.Time{},
	}
	if s.tx, err = g.deps.Broker.Transact(s.options(id)...); err != nil {
		return false, err
	}
	defer s.quit(ctx)
	// Whoever had the id before us ends now: else what it left open would hold
	// our partitions until its time is over.
	begin, cancel := linger(ctx, 0, 30*time.Second)
	_, _, err = s.tx.Client().ProducerID(begin)
	cancel()
	if err != nil {
		return false, fmt.Errorf("begin as transactional id %s: %w", id, err)
	}
	err = s.loop(ctx)
	return s.commits > 0, err
}

func (s *session) options(id string) []kgo.Opt {
	taken := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
		if len(parts) > 0 {
			s.rebalanced.Store(true)
		}
	}
	return []kgo.Opt{
		kgo.ConsumerGroup(s.cfg.Group),
		kgo.ConsumeTopics(s.topics()...),
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(s.cfg.TransactionTimeout),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsRevoked(taken),
		kgo.OnPartitionsLost(taken),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(partitionBytes),
		kgo.FetchMaxWait(fetchWait),
		kgo.MetadataMaxAge(metadataEvery),
		kgo.HeartbeatInterval(heartbeatEvery),
		kgo.SessionTimeout(sessionTimeout),
		kgo.RebalanceTimeout(s.cfg.MaxBatchTime + s.cfg.Timeout + sessionTimeout),
	}
}

func (s *session) loop(ctx context.Context) error {
	for {
		batch, err := s.gather(ctx)
		if batch == nil || err != nil {
			return err
		}
		s.handle(ctx, batch)
		if ready := s.settle(ctx, batch); len(ready) > 0 {
			if err := s.commit(ctx, ready); err != nil {
				return err
			}
		}
		s.tx.AllowRebalance()
	}
}

// quit leaves the group, so that others go on at once.
func (s *session) quit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	s.tx.AllowRebalance()
	if err := s.tx.Client().LeaveGroupContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.log.WarnContext(ctx, "group not left in order", "error", err)
	}
	s.tx.CloseAllowingRebalance()
	s.meter.held.Set(0)
	s.meter.stopped.Set(0)
}

// forget drops what was read: the client reads again from what is committed.
func (s *session) forget() { clear(s.pending) }
