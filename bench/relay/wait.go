package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waybillhq/waybill/bench/child"
)

// hungError says which step took longer than it may.
type hungError struct {
	step  string
	after time.Duration
}

func (e *hungError) Error() string {
	return fmt.Sprintf("%s: not done after %s", e.step, e.after)
}

var errInterrupted = errors.New("interrupted; what was started is stopped and removed")

// step runs one step of the measurement, and at most so long.
func (r *run) step(ctx context.Context, name string, limit time.Duration, fn func(ctx context.Context) error) error {
	if r.cfg.Progress != nil {
		r.cfg.Progress(name)
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := fn(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errInterrupted
	case bounded.Err() != nil:
		return fmt.Errorf("%w (%w)", &hungError{name, limit}, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// limitFor is how long a step may take that handles so many events: a bound
// for what hangs, far above what is slow.
func limitFor(events int64) time.Duration {
	return time.Minute + time.Duration(events)*time.Millisecond
}

// await asks every so often until it is done. It fails if p, which is to bring
// it about, ends.
func await(ctx context.Context, p *child.Process, every time.Duration, done func(ctx context.Context) (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := done(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return p.Ended()
		case <-ctx.Done():
			said := p.Said()
			if said == "" {
				return ctx.Err()
			}
			return errors.Join(ctx.Err(), fmt.Errorf("the relay said:\n%s", said))
		}
	}
}
