package queue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// Channel is what processes that wait for messages listen to. A notification
// names no queue: it would tell every session of the database which tenants
// are busy.
const Channel = "waybill_queue"

// notifyEvery bounds the notifications of a process. One in every transaction
// would make all commits of the database wait for each other.
const notifyEvery = 5 * time.Millisecond

// Signals tells processes of each other's messages, so that who waits for one
// has it at once. It holds one connection while it runs. Nothing is lost if it
// does not run, or has lost its connection: who waits looks now and then.
type Signals struct {
	db   *pgxpool.Pool
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	waiting map[chan struct{}]place
}

// place is a queue by name.
type place struct{ tenant, name string }

// NewSignals makes signals that go through db; log may be nil.
func NewSignals(db *pgxpool.Pool, log *slog.Logger) *Signals {
	if log == nil {
		log = slog.Default()
	}
	return &Signals{db: db, log: log, wake: make(chan struct{}, 1), waiting: map[chan struct{}]place{}}
}

// Run notifies and listens until ctx ends.
func (s *Signals) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.notify(ctx) })
	g.Go(func() error { return s.listen(ctx) })
	return g.Wait()
}

// sent says that something was sent. Its transaction may not be over yet: those
// of this moment share one notification a little later, and one that takes
// longer is found by those who look.
func (s *Signals) sent(q *Queue) {
	if s == nil {
		return
	}
	s.tell(func(p place) bool { return p == place{q.cfg.Tenant, q.cfg.Name} })
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// wait gives a channel that says when to look.
func (s *Signals) wait(q *Queue) (told <-chan struct{}, forget func()) {
	if s == nil {
		return nil, func() {}
	}
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[ch] = place{q.cfg.Tenant, q.cfg.Name}
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, ch)
	}
}

func (s *Signals) tell(whom func(place) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch, p := range s.waiting {
		if whom(p) {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

func (s *Signals) notify(ctx context.Context) error {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		if !pause(ctx, notifyEvery) {
			return nil
		}
		_, err := bounded(ctx, func(ctx context.Context) (struct{}, error) {
			_, err := s.db.Exec(ctx, `NOTIFY `+Channel)
			return struct{}{}, err
		})
		if err != nil && !failing && ctx.Err() == nil {
			s.log.WarnContext(ctx, "tell others of new messages; they will find them by themselves", "error", err)
		}
		failing = err != nil
	}
}

func (s *Signals) listen(ctx context.Context) error {
	failing := false
	for {
		err := s.hear(ctx, &failing)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it failed of this
		}
		if !failing {
			s.log.WarnContext(ctx, "listen for messages; who waits looks by itself meanwhile", "error", err)
		}
		failing = true
		if !pause(ctx, time.Second) {
			return nil
		}
	}
}

// hear listens on a connection of its own until it fails.
func (s *Signals) hear(ctx context.Context, failing *bool) error {
	pooled, err := bounded(ctx, s.db.Acquire)
	if err != nil {
		return fmt.Errorf("open connection: %w", err)
	}
	conn := pooled.Hijack() // the pool's next user must not hear notifications
	defer func() {
		_, _ = bounded(context.WithoutCancel(ctx), func(ctx context.Context) (struct{}, error) { return struct{}{}, conn.Close(ctx) })
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+Channel); err != nil {
		return err
	}
	*failing = false
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		s.tell(func(place) bool { return true })
	}
}

// bounded does what may hang: a connection can be dead without a word.
func bounded[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return do(ctx)
}

// pause is false if ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
