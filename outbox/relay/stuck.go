package relay

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// stuck is the event that ended a session: the broker refused it, or no record
// could be made of it. The next session tries it alone, with all before it
// marked and nothing behind it sent, so that the log does not fill with copies
// of its neighbours while it is tried again and again.
type stuck struct {
	id uuid.UUID
	// Events of its own transaction that come before it and are marked. They
	// cannot be confirmed without it, and need not be sent again.
	before map[uuid.UUID]bool
}

// maxBefore bounds the memory of the events before a stuck one. In a larger
// transaction they are sent again.
const maxBefore = 200_000

// stuckError says at which event the relay cannot go on.
type stuckError struct {
	id  uuid.UUID
	err error
}

func (e *stuckError) Error() string { return fmt.Sprintf("event %s: %v", e.id, e.err) }
func (e *stuckError) Unwrap() error { return e.err }

// stuckAt blames the event, unless the session is ending anyway.
func (s *session) stuckAt(id uuid.UUID, err error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return &stuckError{id, err}
}

func (s *session) noteRead(id uuid.UUID) {
	if s.stuck.id != uuid.Nil && len(s.read) <= maxBefore {
		s.read = append(s.read, id)
	}
}

// publishAlone sends the event that ended the session before.
func (s *session) publishAlone(tx *commit, r row) error {
	if err := s.ledger.waitMarked(s.ctx); err != nil {
		return err
	}
	s.stuck.before = s.marked()
	if err := s.produce(tx, r); err != nil {
		return err
	}
	if err := s.ledger.waitMarked(s.ctx); err != nil {
		return err
	}
	s.log.InfoContext(s.ctx, "the event that stopped the relay is published", "event", s.stuck.id)
	s.stuck = stuck{}
	return nil
}

// marked is what was read of the open transaction before the event at hand.
func (s *session) marked() map[uuid.UUID]bool {
	if len(s.read) > maxBefore {
		return nil
	}
	ids := make(map[uuid.UUID]bool, len(s.read))
	for _, id := range s.read[:len(s.read)-1] {
		ids[id] = true
	}
	return ids
}

// stuckAfter is what the next session has to know, the session having ended
// with err.
func (s *session) stuckAfter(err error) stuck {
	var e *stuckError
	if errors.As(err, &e) && e.id != s.stuck.id {
		return stuck{id: e.id}
	}
	return s.stuck
}
