package api

import "sync"

// allowance bounds how many of something each caller has at a time. Nobody
// waits: one too many is refused.
type allowance struct {
	most int
	mu   sync.Mutex
	held map[string]int
}

func newAllowance(most int) *allowance { return &allowance{most: most, held: map[string]int{}} }

func (a *allowance) take(caller string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[caller] >= a.most {
		return false
	}
	a.held[caller]++
	return true
}

func (a *allowance) give(caller string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[caller]--; a.held[caller] == 0 {
		delete(a.held, caller)
	}
}
