package queue

import (
	"context"
	"errors"
	"testing"
)

func TestADeadLetterQueueThatIsJustBeingRemovedIsUnknown(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t)
	w.queue("lost", Settings{})
	tx, err := w.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `DELETE FROM waybill.queues WHERE name = 'lost'`); err != nil {
		t.Fatal(err)
	}
	declared := make(chan error, 1)
	go func() { declared <- Declare(t.Context(), w.db, "", "mail", Settings{DeadLetter: "lost"}) }()
	w.until("it waits for the end of the removal", func() bool {
		return w.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-declared; !errors.Is(err, ErrUnknown) {
		t.Errorf("%v, want %v", err, ErrUnknown)
	}
}
