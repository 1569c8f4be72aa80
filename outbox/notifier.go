package outbox

import (
	"context"
	"log/slog"
	"time"
)

// Channel is what a relay that polls listens to.
const Channel = "waybill_outbox"

// notifyEvery bounds the notifications of a process. One in every transaction
// would make all commits of the database wait for each other.
const notifyEvery = 5 * time.Millisecond

// Notifier tells a relay that polls that there may be something new. Writers
// do not wait for it, and nothing is lost if it does not run: the relay finds
// the events a little later.
type Notifier struct {
	db   execer
	log  *slog.Logger
	wake chan struct{}
}

// NewNotifier makes a notifier that speaks through db.
func NewNotifier(db execer, log *slog.Logger) *Notifier {
	return &Notifier{db: db, log: log, wake: make(chan struct{}, 1)}
}

// Run notifies until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		}
		// The events of this moment, whose transactions are about to commit,
		// share one notification.
		t := time.NewTimer(notifyEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		err := n.notify(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			n.log.WarnContext(ctx, "tell the relay of new events; it will find them by itself", "error", err)
		}
		failing = err != nil
	}
}

// notify is bounded: a connection may be dead without a word.
func (n *Notifier) notify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := n.db.Exec(ctx, `NOTIFY `+Channel)
	return err
}

func (n *Notifier) signal() {
	if n == nil {
		return
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}
