package api

import (
	"sync"
	"time"
)

// Delays is how long events take from their making to the streams: what tells
// whether there is room for more. It is safe for concurrent use.
type Delays struct {
	mu     sync.Mutex
	counts delayCounts
}

// delayCounts counts delays by what they say of the target.
type delayCounts struct{ all, slow, late int }

// What merchants see is quick enough below targetDelay. One event in ten may
// take longer: a checkpoint or a collection of garbage is no crowd.
const targetDelay = 25 * time.Millisecond

// oldNews is what an event took that waited for something else than room: a
// broker that was away, or a relay that was stopped.
const oldNews = 10 * time.Second

// NewDelays makes one that nothing was told yet.
func NewDelays() *Delays { return &Delays{} }

// Add tells what an event took.
func (d *Delays) Add(took time.Duration) {
	if took > oldNews {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.all++
	if took > targetDelay/2 {
		d.counts.slow++
	}
	if took > targetDelay {
		d.counts.late++
	}
}

// enough is how many events are judged together: of fewer, one that met a
// checkpoint would be one in ten.
const enough = 20

// since gives what was counted since the last call, once that is enough.
func (d *Delays) since() delayCounts {
	if d == nil {
		return delayCounts{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts.all < enough {
		return delayCounts{}
	}
	c := d.counts
	d.counts = delayCounts{}
	return c
}

// tooMany and room judge the ninth decile. Between them nothing is known.
func (c delayCounts) tooMany() bool { return c.late*10 > c.all }
func (c delayCounts) room() bool    { return c.all > 0 && c.slow*10 <= c.all }
