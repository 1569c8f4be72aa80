package consume

import (
	"context"
	"sync"
	"time"
)

// brake lets so many through in a second until it is released.
type brake struct {
	perSecond int
	tokens    chan struct{}
	off       chan struct{}
	once      sync.Once
}

func newBrake(perSecond int) *brake {
	return &brake{perSecond: perSecond, tokens: make(chan struct{}, perSecond), off: make(chan struct{})}
}

func (b *brake) release() { b.once.Do(func() { close(b.off) }) }

// run hands out tokens until the brake is released or ctx ends.
func (b *brake) run(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for given := 0; ; {
		for due := int(time.Since(began).Seconds() * float64(b.perSecond)); given < due; given++ {
			select {
			case b.tokens <- struct{}{}:
			default: // nobody takes them: they are not saved up beyond a second
			}
		}
		select {
		case <-tick.C:
		case <-b.off:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (b *brake) wait(ctx context.Context) error {
	select {
	case <-b.tokens:
	case <-b.off:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
