package api

import (
	"net/http"
	"sync"
)

// thePublic is the caller of everything that asks for no key.
const thePublic = ""

// shares bounds how much of the work under way is one caller's: the slots are
// for all, so nobody may take them all.
type shares struct {
	most int
	mu   sync.Mutex
	held map[string]int
}

func newShares(most int) *shares { return &shares{most: most, held: map[string]int{}} }

func (s *shares) take(caller string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[caller] >= s.most {
		return false
	}
	s.held[caller]++
	return true
}

func (s *shares) give(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[caller]--; s.held[caller] == 0 {
		delete(s.held, caller)
	}
}

func greedy() *Problem {
	return typed(http.StatusTooManyRequests, typeOverloaded, "Too many requests",
		"Too many of your requests are at work. Nothing was done; try again.")
}
