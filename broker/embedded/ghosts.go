package embedded

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ghosts sees out members that were cut off while they joined their group. The
// broker stops a member's session timer while it waits to be answered, and
// begins it anew with the answer: where that cannot be sent it never does. Such a
// member keeps its share of the partitions until somebody else joins or leaves,
// and nobody reads them.
//
// Members of version 3 of the request and older, and static ones, join without
// the id by which they could be seen out.
type ghosts struct {
	log *slog.Logger
	own *kgo.Client // of the broker, set before the first connection

	mu      sync.Mutex
	joining map[membership]*conn // by the connection that waits for the answer
	leaving map[membership]*farewell
	over    bool
	all     sync.WaitGroup
}

type membership struct{ group, member string }

// farewell is under way until done is closed.
type farewell struct {
	done   chan struct{}
	cancel context.CancelFunc
}

const (
	leaveWithin = 10 * time.Minute // through an outage, too
	// A member that comes back waits so long for the end of its former self: the
	// farewell would meet the new one, and its join would never be answered.
	returnWithin = 5 * time.Second
)

func newGhosts(log *slog.Logger) *ghosts {
	return &ghosts{log: log, joining: map[membership]*conn{}, leaving: map[membership]*farewell{}}
}

// joins notes that a member's join is passed on. It must not be where it is
// false: who would be answered is gone.
func (g *ghosts) joins(c *conn, m membership) bool {
	if m.member == "" {
		return true // it will be told its id
	}
	g.await(m)
	defer g.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if was := c.joining; was != nil && g.joining[*was] == c {
		delete(g.joining, *was) // a client that asks again before it was answered
	}
	c.joining, c.joinBehind = &m, c.pending+1
	g.joining[m] = c
	return true
}

// await lets the end of the member's former connection be dealt with first. It
// returns with the mutex held: an end that began between a look and the note of
// the new join would meet that join.
func (g *ghosts) await(m membership) {
	g.mu.Lock()
	for g.leaving[m] != nil {
		f := g.leaving[m]
		g.mu.Unlock()
		t := time.NewTimer(returnWithin)
		select {
		case <-f.done:
		case <-t.C:
			f.cancel()
			<-f.done
		}
		t.Stop()
		g.mu.Lock()
	}
}

// answered notes that the join of m got its answer on c.
func (g *ghosts) answered(c *conn, m membership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.joining[m] == c {
		delete(g.joining, m)
	}
}

// cut sees m out, whose join was not answered when c closed, unless it waits on
// another connection by now.
func (g *ghosts) cut(c *conn, m membership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.joining[m] != c {
		return
	}
	delete(g.joining, m)
	if g.over {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	f := &farewell{make(chan struct{}), cancel}
	g.leaving[m] = f
	g.all.Go(func() {
		defer cancel()
		if err := leave(ctx, g.own, m); err != nil {
			g.log.WarnContext(ctx, "embedded broker: a member that was cut off while joining keeps its partitions until the next rebalance",
				"group", clip(m.group), "member", clip(m.member), "error", err)
		}
		g.mu.Lock()
		delete(g.leaving, m)
		g.mu.Unlock()
		close(f.done)
	})
}

func leave(ctx context.Context, cl *kgo.Client, m membership) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.group, m.member
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = m.member
	req.Members = append(req.Members, member)
	_, err := req.RequestWith(ctx, cl) // that it is not there any more is as good
	return err
}

// end waits for what is under way, and begins no more.
func (g *ghosts) end() {
	g.mu.Lock()
	g.over = true
	for _, f := range g.leaving {
		f.cancel()
	}
	g.mu.Unlock()
	g.all.Wait()
}
