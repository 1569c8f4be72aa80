package clickhouse

import (
	"context"
	"sync"
	"time"

	"github.com/waybillhq/waybill/projection"
)

// joint makes one insert of writes that come at the same time: the first to come
// waits a little, inserts for all that came, and tells them how it went.
type joint struct {
	mu  sync.Mutex
	now *gathering // the one that others may join
}

type gathering struct {
	es   []projection.Event
	full chan struct{} // closed when no more should join
	done chan struct{}
	err  error // once done
}

// atMost is how many events make an insert that waits for no more.
const atMost = 50_000

// do has es inserted. mine says that the caller did it, with its own ctx.
func (j *joint) do(ctx context.Context, es []projection.Event, linger time.Duration, insert func(context.Context, []projection.Event) error) (mine bool, err error) {
	j.mu.Lock()
	g := j.now
	if g != nil {
		j.add(g, es)
		j.mu.Unlock()
		select {
		case <-g.done:
			return false, g.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	g = &gathering{full: make(chan struct{}), done: make(chan struct{})}
	j.now = g
	j.add(g, es)
	j.mu.Unlock()

	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.full:
	case <-ctx.Done():
	}
	j.mu.Lock()
	if j.now == g {
		j.now = nil
	}
	j.mu.Unlock()
	defer close(g.done)
	g.err = insert(ctx, g.es)
	return true, g.err
}

// add has es go with g. The lock is held.
func (j *joint) add(g *gathering, es []projection.Event) {
	g.es = append(g.es, es...)
	if len(g.es) >= atMost && j.now == g {
		j.now = nil
		close(g.full)
	}
}
