package queue

import (
	"errors"
	"sync"
	"testing"
	"time"
)

func TestAQueueInUseIsNotRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	remove := func(want error) {
		t.Helper()
		if err := Remove(t.Context(), w.db, "", "mail"); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	remove(ErrUnknown)
	q := w.queue("mail", Settings{})
	w.queue("bills", Settings{DeadLetter: "mail"})
	remove(ErrInUse)
	w.queue("bills", Settings{})
	w.send(q, Message{Body: []byte("1"), Group: "g", DedupeID: "1"})
	remove(ErrInUse)
	if _, err := q.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), w.db, "another", "mail"); !errors.Is(err, ErrUnknown) {
		t.Errorf("another tenant: %v", err)
	}
	remove(nil)
	if _, err := q.Send(t.Context(), w.db, Message{Body: []byte("2")}); !errors.Is(err, ErrUnknown) {
		t.Errorf("sent: %v", err)
	}
	w.queue("mail", Settings{})
	if sent := w.send(q, Message{Body: []byte("1"), DedupeID: "1"}); sent[0].Duplicate {
		t.Error("the new queue remembers the old one's dedupe ids")
	}
}

// Of a message sent while its queue is removed the sender knows what became of
// it: it is there, and so is the queue, or it was refused.
func TestAMessageIsNotLostToARemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 30 {
		q := w.queue("mail", Settings{})
		var sent, removed error
		var both sync.WaitGroup
		both.Go(func() { _, sent = q.Send(t.Context(), w.db, Message{Body: []byte("1")}) })
		both.Go(func() { removed = Remove(t.Context(), w.db, "", "mail") })
		both.Wait()
		switch {
		case sent == nil && errors.Is(removed, ErrInUse):
			if _, err := q.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
		case errors.Is(sent, ErrUnknown) && removed == nil:
		default:
			t.Fatalf("sent: %v, removed: %v", sent, removed)
		}
	}
}

func TestATenantsQueuesAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	declare := func(tenant, name string, want error) {
		t.Helper()
		if err := DeclareWithin(t.Context(), w.db, 2, tenant, name, Settings{Lease: time.Minute}); !errors.Is(err, want) {
			t.Errorf("%s of %s: %v, want %v", name, tenant, err, want)
		}
	}
	declare("ana", "a", nil)
	declare("ana", "b", nil)
	declare("ana", "c", ErrTooMany)
	declare("ana", "a", nil) // settings of one that is there
	declare("rui", "c", nil)
}
