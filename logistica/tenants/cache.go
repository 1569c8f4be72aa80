package tenants

import (
	"sync"
	"time"
)

// cache remembers at most size values for a while each. Full of fresh values it
// drops any one of them: forgetting costs a query, nothing more.
type cache[K comparable, V any] struct {
	size int
	life time.Duration
	now  func() time.Time

	mu      sync.Mutex
	entries map[K]entry[V]
	drops   uint64
}

type entry[V any] struct {
	value V
	until time.Time
}

func newCache[K comparable, V any](size int, life time.Duration, now func() time.Time) *cache[K, V] {
	return &cache[K, V]{size: size, life: life, now: now, entries: map[K]entry[V]{}}
}

func (c *cache[K, V]) get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[k]
	if !ok || !c.now().Before(e.until) {
		return v, false
	}
	return e.value, true
}

func (c *cache[K, V]) put(k K, v V) { c.putFor(k, v, c.life, c.mark()) }

// mark is taken before a value is looked up: putFor remembers it only if nothing
// was dropped since, which may have been the value's like.
func (c *cache[K, V]) mark() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops
}

// putFor remembers v for a life of its own.
func (c *cache[K, V]) putFor(k K, v V, life time.Duration, mark uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mark != c.drops {
		return
	}
	if _, known := c.entries[k]; !known && len(c.entries) >= c.size {
		c.makeRoom()
	}
	c.entries[k] = entry[V]{v, c.now().Add(life)}
}

// makeRoom drops one entry. It looks at a few only, for one that is stale, so
// that a full cache stays cheap.
func (c *cache[K, V]) makeRoom() {
	const look = 20
	var victim K
	now, looked := c.now(), 0
	for k, e := range c.entries {
		victim = k
		if looked++; looked == look || !now.Before(e.until) {
			break
		}
	}
	delete(c.entries, victim)
}

func (c *cache[K, V]) drop(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	delete(c.entries, k)
}
