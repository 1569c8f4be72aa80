package server

import (
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/queue"
)

// shares bounds what one tenant may have of something at a time.
type shares struct {
	most  int
	mu    sync.Mutex
	taken map[string]int
}

func (s *shares) take(who string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[who] >= s.most {
		return false
	}
	s.taken[who]++
	return true
}

func (s *shares) give(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[who]--; s.taken[who] == 0 {
		delete(s.taken, who)
	}
}

// maxHandles bounds the queues whose state is remembered between requests.
const maxHandles = 4096

// handles keeps what a handle learns of its queue: where to look for messages,
// and how full it is.
type handles struct {
	db      *pgxpool.Pool
	signals *queue.Signals
	mu      sync.Mutex
	known   map[[2]string]*queue.Queue
}

func newHandles(db *pgxpool.Pool, signals *queue.Signals) *handles {
	return &handles{db: db, signals: signals, known: map[[2]string]*queue.Queue{}}
}

func (h *handles) of(tenant, name string) *queue.Queue {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]string{tenant, name}
	q := h.known[key]
	if q == nil {
		if len(h.known) >= maxHandles {
			clear(h.known) // what they knew is found again
		}
		q = queue.New(h.db, queue.Config{Tenant: tenant, Name: name, Signals: h.signals})
		h.known[key] = q
	}
	return q
}
