package relay

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/pg/wal"
)

// commit is one transaction of the outbox on its way.
type commit struct {
	time     time.Time // by the server's clock; zero in a back-fill
	end      wal.LSN   // zero until the commit is read
	closed   bool
	unmarked int // events read and not yet marked
}

// mark is one acknowledged event, to be written down.
type mark struct {
	commit    *commit
	id        uuid.UUID
	size      int // bytes of the record
	partition int32
	offset    int64
}

// ledger keeps what is between reading and mark, in commit order. Events are
// acknowledged and marked in any order; only the end of a commit before which
// nothing is open may be confirmed, since the server then forgets all before.
type ledger struct {
	mu       sync.Mutex
	room     *sync.Cond // something was marked, or failed
	limit    int        // of unmarked; 1 until the first mark after a fruitless session
	full     int        // what limit then becomes
	maxBytes int        // of bytes, but one event alone may be larger
	unmarked int
	bytes    int
	commits  []*commit // oldest first
	marks    []mark    // acknowledged, not yet taken by the marker
	spare    []mark
	closed   bool
	err      error

	wake   chan struct{} // there are marks, or the ledger is closed
	failed chan struct{} // closed at the first failure
}

// newLedger makes a ledger. A careful one lets a single event through until
// that is marked: what keeps failing would else fill the log with copies.
func newLedger(limit, maxBytes int, careful bool) *ledger {
	l := &ledger{limit: limit, full: limit, maxBytes: maxBytes, wake: make(chan struct{}, 1), failed: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	if careful {
		l.limit = 1
	}
	return l
}

func (l *ledger) begin(at time.Time) *commit {
	c := &commit{time: at}
	l.mu.Lock()
	l.commits = append(l.commits, c)
	l.mu.Unlock()
	return c
}

// add counts one more event into c, waiting while the ledger is full.
func (l *ledger) add(ctx context.Context, c *commit, size int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.wait(ctx, func() bool {
		return l.unmarked < l.limit && (l.bytes == 0 || l.bytes+size <= l.maxBytes)
	}); err != nil {
		return err
	}
	c.unmarked++
	l.unmarked++
	l.bytes += size
	return nil
}

// waitMarked waits until every event read so far is marked, be its commit
// read or not.
func (l *ledger) waitMarked(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool { return l.unmarked == 0 })
}

// waitIdle waits until everything read so far is marked.
func (l *ledger) waitIdle(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool { return len(l.commits) == 0 })
}

// wait waits, with l.mu held, until ok. It ends early with the session's
// failure or with ctx.
func (l *ledger) wait(ctx context.Context, ok func() bool) error {
	if l.err == nil && !ok() {
		// Under the lock: a broadcast between check and Wait would be lost.
		stop := context.AfterFunc(ctx, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.room.Broadcast()
		})
		defer stop()
	}
	for l.err == nil && ctx.Err() == nil && !ok() {
		l.room.Wait()
	}
	if l.err != nil {
		return l.err
	}
	return ctx.Err()
}

func (l *ledger) commit(c *commit, end wal.LSN) {
	l.mu.Lock()
	c.end, c.closed = end, true
	l.merge(c)
	l.mu.Unlock()
	l.signal() // a commit whose events are all marked already waits for this
}

// merge lets the commit before the last one, c, stand for c too if nothing of
// c is open: servers before 15 send every transaction, and those without an
// event would pile up while the broker is away.
func (l *ledger) merge(c *commit) {
	n := len(l.commits)
	if c.unmarked > 0 || n < 2 {
		return
	}
	before := l.commits[n-2]
	before.end = max(before.end, c.end)
	l.commits[n-1] = nil
	l.commits = l.commits[:n-1]
}

func (l *ledger) acknowledge(m mark) {
	l.mu.Lock()
	l.marks = append(l.marks, m)
	first := len(l.marks) == 1
	l.mu.Unlock()
	if first {
		l.signal()
	}
}

// take gives the marks to write. The slice is the caller's until written.
func (l *ledger) take() (marks []mark, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks, l.marks = l.marks, l.spare[:0]
	l.spare = nil
	return marks, l.closed
}

// written ticks marks off and returns the position up to which all is done,
// zero if it did not move.
func (l *ledger) written(marks []mark) wal.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range marks {
		m.commit.unmarked--
		l.bytes -= m.size
	}
	l.unmarked -= len(marks)
	if len(marks) > 0 {
		l.limit = l.full
	}
	clear(marks)
	l.spare = marks
	var end wal.LSN
	done := 0
	for _, c := range l.commits {
		if !c.closed || c.unmarked > 0 {
			break
		}
		end = max(end, c.end)
		done++
	}
	l.drop(done)
	l.room.Broadcast()
	return end
}

// drop forgets the n oldest commits, moving the rest to the front so that the
// slice does not grow with the history.
func (l *ledger) drop(n int) {
	if n == 0 {
		return
	}
	rest := copy(l.commits, l.commits[n:])
	clear(l.commits[rest:])
	l.commits = l.commits[:rest]
}

// idle tells whether nothing is between reading and confirmation.
func (l *ledger) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.commits) == 0
}

func (l *ledger) inFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unmarked
}

// fail stops the session: nothing after the failed event may be confirmed.
func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.closed {
		return
	}
	l.err = err
	close(l.failed)
	l.room.Broadcast()
}

func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// abandonOpen forgets a transaction that was cut off in the middle: it will be
// read again from its start, by the next session.
func (l *ledger) abandonOpen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.commits); n > 0 && !l.commits[n-1].closed {
		l.commits = l.commits[:n-1]
	}
}

// close tells the marker that no more will come.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
}

func (l *ledger) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
