package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// stopTimeout bounds the stop of one part.
const stopTimeout = 20 * time.Second

// stack is the parts that run, in the order they started. They stop in the
// reverse order, one after the other.
type stack struct {
	log    *slog.Logger
	parts  []part
	failed chan error
}

type part struct {
	name string
	stop func(ctx context.Context) error
}

func newStack(log *slog.Logger) *stack {
	return &stack{log: log, failed: make(chan error, 1)}
}

// run starts fn, which returns when its context ends and all it started has
// stopped. An error before that fails the whole program.
func (s *stack) run(ctx context.Context, name string, fn func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		err := fn(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("ended by itself")
			}
			s.fail(fmt.Errorf("%s: %w", name, err))
			err = nil // told, and not to be told again by the stop
		}
		done <- err
	}()
	s.onStop(name, func(stopping context.Context) error {
		cancel()
		select {
		case err := <-done:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-stopping.Done():
			return fmt.Errorf("did not stop within %s", stopTimeout)
		}
	})
}

// onStop has stop called when the parts started later have stopped.
func (s *stack) onStop(name string, stop func(context.Context) error) {
	s.parts = append(s.parts, part{name, stop})
}

func (s *stack) fail(err error) {
	select {
	case s.failed <- err:
	default: // the first failure stops the program; later ones mostly follow from it
		s.log.Warn("failed while another failure is being dealt with", "error", err)
	}
}

func (s *stack) stop(ctx context.Context) error {
	var errs []error
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		began := time.Now()
		stopping, cancel := context.WithTimeout(ctx, stopTimeout)
		if err := p.stop(stopping); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", p.name, err))
		}
		cancel()
		s.log.DebugContext(ctx, "stopped", "part", p.name, "took", time.Since(began).Round(time.Millisecond))
	}
	s.parts = nil
	return errors.Join(errs...)
}
