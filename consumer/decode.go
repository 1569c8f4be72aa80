package consumer

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/event"
)

// decode makes the message's body, unless that is done.
func (s *session) decode(ctx context.Context, m *message) (err error) {
	if m.fault != nil || m.body != nil {
		return m.fault
	}
	ctx, cancel := context.WithTimeout(event.WithCause(ctx, &m.env), s.cfg.Timeout)
	defer cancel()
	m.body, err = m.route.decode(ctx, m)
	return err
}

// unknown has a lane wait whose event needs a registry that is away. Only
// events of schemas not yet known do: the worker is free for the others.
func (s *session) unknown(l *lane, err error) (wait time.Duration) {
	s.outage(err)
	l.waits++
	return backoff(outagePause, outageMax, l.waits-1)
}

// undecoded is what becomes of a lane whose first event cannot be decoded.
func (s *session) undecoded(l *lane, m *message, err error) (wait time.Duration, done bool) {
	if s.isOutage(err) {
		return s.unknown(l, err), false
	}
	return s.failed(l, m, err), false
}

// decodeAll makes each event's body. A panic is its event's failure.
func (s *session) decodeAll(ctx context.Context, items []item) []error {
	errs := make([]error, len(items))
	for i := 0; i < len(items); {
		err := safely(func() error {
			for ; i < len(items); i++ {
				errs[i] = s.decode(ctx, items[i].m)
			}
			return nil
		})
		if err != nil && i < len(items) {
			errs[i] = err
			i++
		}
	}
	return errs
}

// readable decodes the events, and leaves out what cannot be decoded with all
// behind it in its lane. If it is the lane's first event the lane is dealt with
// at once, alone.
func (s *session) readable(a *attempted, items []item) []item {
	ctx, cancel := whileOurs(a.parts)
	defer cancel()
	var out []item
	var cut *lane
	for i, err := range s.decodeAll(ctx, items) {
		it := items[i]
		switch {
		case it.l == cut:
		case err == nil:
			out = append(out, it)
		case ctx.Err() != nil: // one of the partitions is given up: that is no event's fault
			cut = it.l
			a.stuck[it.l] = 0
		default:
			cut = it.l
			if len(out) == 0 || out[len(out)-1].l != it.l {
				a.stuck[it.l], _ = s.undecoded(it.l, it.m, err)
			}
		}
	}
	return out
}
