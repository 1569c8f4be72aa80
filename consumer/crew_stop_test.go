package consumer

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// Shrunk to one while all are at work, grown again and stopped: nobody waits for
// ever, and what was sent is handled.
func TestTheCrewMayChangeWhileAllAreBusyAndAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	gate := make(chan struct{})
	began := make(chan struct{}, 100)
	m := w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		began <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.Workers = 3 })
	w.move("a", "b", "c", "d", "e", "f", "g", "h")
	<-began
	<-began
	<-began
	m.group.SetWorkers(1)
	close(gate)
	w.settled()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				m.group.SetWorkers(1 + n%9)
			}
		}
	}()
	w.move("a", "b", "c", "d")
	w.settled()
	m.stop()
	<-m.done
	m.group.SetWorkers(5)
	close(stop)
	<-done
	w.inOrder()
}
