package ledger

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// member is a process of the house: killed, and started again by whoever keeps
// it, as a supervisor would.
type member struct {
	name string
	// start returns once the process runs; a relay need not be ready then.
	start func(ctx context.Context) error
	// kill ends it by kill -9 and returns when it is gone.
	kill func() error
	// gone is closed when the process of the last start has ended.
	gone func() <-chan struct{}

	up      atomic.Bool
	strikes chan strike
	starts  int
}

// strike is the order to kill, and how long to leave it at that.
type strike struct {
	away time.Duration
	done chan error
}

// keep runs the member until ctx ends, which leaves it running. A start that
// fails, as a relay's does while its engines are away, is tried again.
func (m *member) keep(ctx context.Context, failed func(error)) {
	for ctx.Err() == nil {
		if err := m.start(ctx); err != nil {
			if ctx.Err() == nil {
				failed(fmt.Errorf("start %s: %w", m.name, err))
			}
			pause(ctx, 500*time.Millisecond)
			continue
		}
		m.starts++
		m.up.Store(true)
		select {
		case <-ctx.Done():
			return
		case <-m.gone():
			m.up.Store(false)
			pause(ctx, 200*time.Millisecond)
		case s := <-m.strikes:
			m.up.Store(false)
			s.done <- m.kill()
			pause(ctx, s.away)
		}
	}
}

// strike kills the member, which stays away for a while. It is false if the
// member went or was being started.
func (m *member) strike(ctx context.Context, away time.Duration) (bool, error) {
	s := strike{away: away, done: make(chan error, 1)}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case m.strikes <- s:
		return true, <-s.done
	case <-late.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
