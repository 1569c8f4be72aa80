package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

const (
	fetchBytes     = 8 << 20
	partitionBytes = 1 << 20
	pollAtOnce     = 2048
	fetchWait      = 250 * time.Millisecond // a partition that is read again may wait so long for the others' fetch
	daypartEvery   = time.Hour
	policiesEvery  = time.Minute
	metadataEvery  = 30 * time.Second // until new partitions are seen; the client's own default is 5 min
)

// outOfReach is the default of Config.Infrastructure.
func outOfReach(err error) bool {
	return pg.Infrastructure(err) || errors.Is(err, registry.ErrUnavailable)
}

// run is one session after another until ctx ends.
func (g *Group) run(ctx context.Context) error {
	for {
		again, err := g.session(ctx)
		if !again || err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (g *Group) session(ctx context.Context) (again bool, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	handlers, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	s := newSession(g, handlers)
	s.restart = func() { s.again.Store(true); end() }
	cl, err := g.deps.Client(s.options()...)
	if err != nil {
		return false, fmt.Errorf("make client: %w", err)
	}
	s.cl = cl
	close(s.ready)

	var clocks sync.WaitGroup
	g.running.Store(s)
	s.man()
	ticking, stopTicking := context.WithCancel(handlers)
	clocks.Go(func() { every(ticking, g.cfg.FlushEvery, s.tick) })
	clocks.Go(func() { s.watchParked(ticking) })
	clocks.Go(func() { s.keepInbox(ticking) })
	clocks.Go(func() { s.copyDead(ticking) })
	clocks.Go(func() { s.countDead(ticking) })
	clocks.Go(func() { s.watchPolicies(ticking) })
	clocks.Go(func() { every(ticking, s.cfg.StallAfter/stallLooks, s.lookForStalls) })

	s.poll(ctx)
	s.quit(cl) //nolint:contextcheck // it leaves in order although ctx is over
	stopTicking()
	clocks.Wait()
	cut()
	s.work.close()
	s.crew.Wait()
	return s.again.Load(), nil
}

func (s *session) options() []kgo.Opt {
	return append(s.cfg.Protocol.options(),
		kgo.ConsumerGroup(s.cfg.Group),
		kgo.ConsumeTopics(s.topics()...),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.AdjustFetchOffsetsFn(s.assign),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.lost),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMaxAge(metadataEvery),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxPartitionBytes(partitionBytes),
		kgo.HeartbeatInterval(heartbeatEvery),
		kgo.RebalanceTimeout(s.cfg.rebalance()),
		kgo.SessionTimeout(s.cfg.session()),
	)
}

const heartbeatEvery = 2 * time.Second

// rebalance is how long the group waits for a member to give partitions back,
// which takes as long as release and save do.
func (c Config) rebalance() time.Duration {
	return c.Drain + giveUp + flushWithin + time.Second
}

// session is how long a member that was killed holds its partitions. It is
// longer than a rebalance takes: a member that waits for one sends no
// heartbeats, and the embedded broker's groups drop it without an answer when
// its session ends, whereupon it hangs, and two members think they own its
// partitions.
func (c Config) session() time.Duration {
	return max(c.rebalance()+heartbeatEvery, minSession)
}

// minSession is the shortest that brokers allow by default.
const minSession = 6 * time.Second

// quit leaves the group, which gives all partitions back, and closes the
// client. Without a broker to hear it the partitions are released here.
func (s *session) quit(cl *kgo.Client) {
	s.telling.Lock() // waits for what is being told
	s.leaving = true
	s.telling.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.rebalance())
	defer cancel()
	if err := cl.LeaveGroupContext(ctx); err != nil {
		s.log.Warn("group not left in order", "error", err)
	}
	s.lost(s.ctx, cl, s.owned())
	cl.CloseAllowingRebalance()
}

func (s *session) owned() map[string][]int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]int32{}
	for at := range s.parts {
		out[at.topic] = append(out[at.topic], at.id)
	}
	return out
}

// every calls f, d apart, until ctx ends.
func every(ctx context.Context, d time.Duration, f func(context.Context)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f(ctx)
		}
	}
}

// watchPolicies looks whether the database has policies by tenant, so that only
// groups of one that has pay for forgetting the tenant between two events.
func (s *session) watchPolicies(ctx context.Context) {
	look := func(ctx context.Context) {
		var some bool
		err := s.deps.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_policies
			WHERE concat(qual, with_check) LIKE '%' || $1 || '%')`, pg.TenantSetting).Scan(&some)
		s.policies.Store(err != nil || some)
	}
	look(ctx)
	every(ctx, policiesEvery, look)
}

func (s *session) keepInbox(ctx context.Context) {
	ensure := func(ctx context.Context) {
		back := int(s.cfg.InboxKeep / (24 * time.Hour))
		if err := ensureInbox(ctx, s.deps.Owner, back, daysAhead); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "days without a partition go to the default one", "error", err)
		}
		if err := s.prune(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "old days stay in the inbox for now", "error", err)
		}
		if err := s.pruneSequences(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "old numbers of keys stay for now", "error", err)
		}
	}
	ensure(ctx)
	every(ctx, daypartEvery, ensure)
}
