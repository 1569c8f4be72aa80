package server

import "sync"

// allowance bounds the requests that one tenant has at work: who asks for much at
// once, or sends slowly, leaves the others room.
type allowance struct {
	most int
	mu   sync.Mutex
	held map[string]int
}

func (a *allowance) take(tenant string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[tenant] >= a.most {
		return false
	}
	a.held[tenant]++
	return true
}

func (a *allowance) give(tenant string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[tenant]--; a.held[tenant] == 0 {
		delete(a.held, tenant)
	}
}
