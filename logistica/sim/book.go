package sim

import (
	"context"
	"net/http"
	"sync"
)

// entry is what the simulation knows of an order it made: it is merchant and
// customer too.
type entry struct {
	token string // the customer's
	key   string // the merchant's
	plan  order
}

// bookLength bounds the orders that are remembered.
const bookLength = 100_000

// book remembers the last orders that were made.
type book struct {
	limit int

	mu      sync.Mutex
	entries map[string]entry
	ring    []string
	at      int
}

func newBook(limit int) *book { return &book{limit: limit, entries: map[string]entry{}} }

func (b *book) put(id string, e entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.entries[id]; !known {
		if len(b.ring) < b.limit {
			b.ring = append(b.ring, id)
		} else {
			delete(b.entries, b.ring[b.at])
			b.ring[b.at] = id
			b.at = (b.at + 1) % b.limit
		}
	}
	b.entries[id] = e
}

func (b *book) get(id string) (entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[id]
	return e, ok
}

// find is what is known of an order. One that an earlier simulation made is
// asked for by the merchants' keys: a courier may still be out with it.
func (s *Sim) find(ctx context.Context, id string) (entry, bool) {
	if e, ok := s.book.get(id); ok {
		return e, true
	}
	for _, key := range s.keys {
		var o madeOrder
		err := s.client.do(ctx, request{method: http.MethodGet, path: "/v1/orders/" + id, key: key, into: &o})
		if err == nil && o.TrackingToken != "" {
			e := entry{token: o.TrackingToken, key: key, plan: s.plan.order(0)}
			e.plan.fate = delivered
			s.book.put(id, e)
			return e, true
		}
		if ctx.Err() != nil {
			break
		}
	}
	return entry{}, false
}

// code is what the customer reads on the tracking page and tells the courier.
func (s *Sim) code(ctx context.Context, e entry) (string, error) {
	var t tracked
	err := s.client.do(ctx, request{method: http.MethodGet, path: "/v1/track/" + e.token, into: &t})
	return t.DeliveryCode, err
}
