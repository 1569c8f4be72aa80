package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// thePublic is the caller of everything that asks for no key.
const thePublic = ""

// shares divides the work among callers. So many requests are worked on at a
// time as the database has connections for; the others wait, each caller's in a
// line of its own, and the lines take turns: one that waits in a line of a
// hundred does not wait behind another caller's hundred. One caller never has
// all places, so that who comes next finds one at once, and waits for nothing
// but its turn.
type shares struct {
	most   int // of one caller's, at work and waiting
	places int // at work, of all
	own    int // at work, of one caller's

	mu    sync.Mutex
	free  int
	held  map[string]*share
	turns []*share // those with a line, the next one first
}

// share is what one caller has.
type share struct {
	held, working int
	line          []chan struct{} // closed when it is their turn
}

func newShares(most, places, own int) *shares {
	return &shares{most: most, places: places, own: own, free: places, held: map[string]*share{}}
}

// ownOf is how many of some places one caller may have where nobody says: never
// all, unless there is one.
func ownOf(places int) int { return max(1, min(12, places*3/8)) }

// checkOwn also sees what one of the two is where only the other was set.
func checkOwn(own, places int) error {
	if own > places {
		return fmt.Errorf("api: at_work_per_caller %d is more than at_work %d, which is of all callers: raise api.at_work or lower api.at_work_per_caller", own, places)
	}
	return nil
}

// take waits for a place, and is false at once where the caller has its most
// already, or when ctx ends. A caller that got one gives it back.
func (s *shares) take(ctx context.Context, caller string) bool {
	s.mu.Lock()
	c := s.held[caller]
	if c == nil {
		c = &share{}
		s.held[caller] = c
	}
	if c.held >= s.most {
		s.mu.Unlock()
		return false
	}
	c.held++
	if s.free > 0 && c.working < s.own && len(c.line) == 0 {
		s.begin(c)
		s.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	if c.line = append(c.line, turn); len(c.line) == 1 {
		s.turns = append(s.turns, c)
	}
	s.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
		return s.leave(caller, c, turn)
	}
}

func (s *shares) begin(c *share) {
	s.free--
	c.working++
}

// leave gives a place in the line up. It is true if the turn came meanwhile.
func (s *shares) leave(caller string, c *share, turn chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range c.line {
		if other == turn {
			c.line = append(c.line[:i], c.line[i+1:]...)
			if len(c.line) == 0 {
				s.strike(c)
			}
			s.forget(caller, c)
			return false
		}
	}
	return true
}

func (s *shares) give(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[caller]
	s.free++
	c.working--
	s.forget(caller, c)
	s.next()
}

// forget counts one of the caller's less.
func (s *shares) forget(caller string, c *share) {
	if c.held--; c.held == 0 {
		delete(s.held, caller)
	}
}

// next lets in whose turn it is, and puts them behind the others.
func (s *shares) next() {
	for i := 0; s.free > 0 && i < len(s.turns); {
		c := s.turns[i]
		if c.working >= s.own {
			i++
			continue
		}
		s.begin(c)
		close(c.line[0])
		c.line = c.line[1:]
		s.turns = append(s.turns[:i], s.turns[i+1:]...)
		if len(c.line) > 0 {
			s.turns = append(s.turns, c)
		}
	}
}

func (s *shares) strike(c *share) {
	for i, other := range s.turns {
		if other == c {
			s.turns = append(s.turns[:i], s.turns[i+1:]...)
			return
		}
	}
}

func greedy() *Problem {
	return typed(http.StatusTooManyRequests, typeOverloaded, "Too many requests",
		"Too many of your requests are at work. Nothing was done; try again.")
}

func hasty(wait time.Duration) *Problem {
	p := typed(http.StatusTooManyRequests, typeOverloaded, "Too many requests",
		"You send more requests a second than your share. Nothing was done; send the same request again later, with the same Idempotency-Key.")
	p.retryAfter = wait
	return p
}
