package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestPartsStopInTheReverseOrderOneAfterTheOther(t *testing.T) {
	s := newStack(slog.New(slog.DiscardHandler))
	var order []string
	for _, name := range []string{"a", "b", "c"} {
		s.run(t.Context(), name, func(ctx context.Context) error {
			<-ctx.Done()
			order = append(order, name) // a race, unless one after the other
			return ctx.Err()
		})
	}
	if err := s.stop(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.Equal(order, []string{"c", "b", "a"}) {
		t.Error(order)
	}
	if err := s.stop(t.Context()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func TestAFailureIsToldOnce(t *testing.T) {
	s := newStack(slog.New(slog.DiscardHandler))
	broken := errors.New("broken")
	s.run(t.Context(), "part", func(context.Context) error { return broken })
	err := <-s.failed
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "part: ") {
		t.Error(err)
	}
	if err := s.stop(t.Context()); err != nil {
		t.Errorf("told again: %v", err)
	}
}

func TestAPartThatEndsByItselfIsAFailure(t *testing.T) {
	s := newStack(slog.New(slog.DiscardHandler))
	s.run(t.Context(), "part", func(context.Context) error { return nil })
	if err := <-s.failed; err == nil {
		t.Error("taken for an orderly end")
	}
	_ = s.stop(t.Context())
}

func TestAFailingStopDoesNotKeepTheOthersFromStopping(t *testing.T) {
	s := newStack(slog.New(slog.DiscardHandler))
	broken, stopped := errors.New("broken"), false
	s.onStop("first", func(context.Context) error { stopped = true; return nil })
	s.onStop("second", func(context.Context) error { return broken })
	if err := s.stop(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "second") {
		t.Error(err)
	}
	if !stopped {
		t.Error("the first part still runs")
	}
}
