package consumer

import (
	"context"
	"time"
)

// place names a partition.
type place struct {
	topic string
	id    int32
}

// partition is this member's ownership of a partition, from one assignment to
// its end. The session's lock guards it.
type partition struct {
	place
	topicID [16]byte
	owner   int64 // epoch of this assignment, see fence.go
	tracker tracker
	saved   int64     // the position in the database
	told    int64     // and the one that we told the broker; -1: none
	reached int64     // the farthest it has been
	counted time.Time // since when all its owners have counted numbers

	lanes  map[string]*lane
	ready  []*lane             // for a worker, see work.go
	parked map[string]struct{} // keys with rows in the parked table

	running  int           // bundles in the hands of workers
	stopping bool          // nothing new may begin
	stop     chan struct{} // closed with stopping
	quiet    chan struct{} // closed once stopping and nothing is running
	ceded    time.Time     // when another member was found to have taken it over
	fault    string        // why nothing is done, see stop.go
	hot      *lane         // the one that holds more than its share, see hot.go
	seen     progress      // by the watchdog

	ctx    context.Context // ends when handlers must give up
	cancel context.CancelFunc
}

func newPartition(ctx context.Context, at place, topicID [16]byte, owner, next int64) *partition {
	p := &partition{
		place: at, topicID: topicID, owner: owner, tracker: tracker{next: next, epoch: -1}, saved: next, told: -1,
		lanes: map[string]*lane{}, parked: map[string]struct{}{},
		stop: make(chan struct{}), quiet: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// lane is one key's queue. At most one worker holds it, so that whatever
// happens to the key, handling, parking or retrying, happens in order.
type lane struct {
	p     *partition
	key   string
	queue []*message
	bytes int         // of the queue
	busy  bool        // with a worker, ready for one, or waiting for its timer
	timer *time.Timer // set while waiting

	due   bool // the head of its parked events is to be tried
	moved bool // while it is due, the last step moved new events behind

	attempts int       // at the head of queue
	since    time.Time // the first of them failed
	waits    int       // for infrastructure, in a row
	cuts     int       // those of them that lost their connection though the database answered
}

func (p *partition) lane(key string) *lane {
	l := p.lanes[key]
	if l == nil {
		l = &lane{p: p, key: key}
		p.lanes[key] = l
	}
	return l
}

func (l *lane) isParked() bool {
	_, is := l.p.parked[l.key]
	return is
}

// pop takes the n first messages off the queue.
func (l *lane) pop(n int) {
	for _, m := range l.queue[:n] {
		l.bytes -= m.size()
	}
	clear(l.queue[:n])
	l.queue = l.queue[n:]
	l.attempts, l.waits, l.cuts = 0, 0, 0
}

// halt lets nothing new begin.
func (p *partition) halt() {
	if p.stopping {
		return
	}
	p.stopping = true
	close(p.stop)
	for _, l := range p.lanes {
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	p.hush()
}

// over tells whether the partition is given up.
func (p *partition) over() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// hush tells who waits for the end of the running lanes.
func (p *partition) hush() {
	if p.stopping && p.running == 0 {
		close(p.quiet)
	}
}
