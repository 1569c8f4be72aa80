package relay

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/broker/producer"
	"github.com/waybillhq/waybill/pg/wal"
)

// tag is what comes back with a record from the broker.
type tag struct {
	id     uuid.UUID
	commit uint64 // number of the transaction in the ledger
	size   int32  // bytes it counts for
	mark   bool   // it is marked once it is published
}

type batch = producer.Batch[tag]

// commit is one transaction of the outbox on its way.
type commit struct {
	time   time.Time // by the server's clock; zero if it was read from the table
	lsn    wal.LSN   // of the commit's record
	end    wal.LSN   // zero until the commit is read
	closed bool
	open   int // events read and not yet marked
}

// ledger keeps what is between reading and mark, in commit order. Events are
// acknowledged and marked in any order; only the end of a commit before which
// nothing is open may be confirmed, since the server then forgets all before.
type ledger struct {
	mu        sync.Mutex
	room      *sync.Cond // something was marked, or failed
	limit     int        // of open; 1 until the first mark after a fruitless session
	full      int        // what limit then becomes
	maxBytes  int        // of bytes, but one event alone may be larger
	most      int        // of commits that are kept
	open      int
	bytes     int
	commits   []commit // a ring: number n is at n % len
	first     uint64   // number of the oldest; they begin at 1
	count     int
	acked     []*batch               // acknowledged, not yet taken by the marker
	unwritten int                    // batches acknowledged and not yet marked
	stops     []stop                 // partitions that stopped, to be written down
	flying    map[uuid.UUID]struct{} // events of open; nil if nobody asks
	closed    bool
	err       error

	wake   chan struct{} // there is work for the marker, or the ledger is closed
	failed chan struct{} // closed at the first failure
}

// maxCommits bounds the commits that are kept behind one that is not through,
// some 64 bytes each. Their events are marked and count no more.
const maxCommits = 1_000_000

// newLedger makes a ledger. A careful one lets a single event through until
// that is marked: what keeps failing would else fill the log with copies.
func newLedger(limit, maxBytes int, careful bool) *ledger {
	l := &ledger{
		limit: limit, full: limit, maxBytes: maxBytes, most: maxCommits, first: 1, commits: make([]commit, 1024),
		wake: make(chan struct{}, 1), failed: make(chan struct{}),
	}
	l.room = sync.NewCond(&l.mu)
	if careful {
		l.limit = 1
	}
	return l
}

// at is commit n, which must be in the ring.
func (l *ledger) at(n uint64) *commit { return &l.commits[n%uint64(len(l.commits))] }

// begin opens the entry of a transaction and gives its number.
func (l *ledger) begin(lsn wal.LSN, at time.Time) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == len(l.commits) {
		l.grow()
	}
	n := l.first + uint64(l.count)
	l.count++
	*l.at(n) = commit{time: at, lsn: lsn}
	return n
}

func (l *ledger) grow() {
	larger := make([]commit, 2*len(l.commits))
	for i := range l.count {
		n := l.first + uint64(i)
		larger[n%uint64(len(larger))] = *l.at(n)
	}
	l.commits = larger
}

// add counts one more event into its commit, which must be the last, waiting
// while the ledger is full.
func (l *ledger) add(ctx context.Context, t tag) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.wait(ctx, func() bool {
		return l.open < l.limit && l.count <= l.most && (l.bytes == 0 || l.bytes+int(t.size) <= l.maxBytes)
	}); err != nil {
		return err
	}
	l.at(t.commit).open++
	l.open++
	l.bytes += int(t.size)
	if l.flying != nil {
		l.flying[t.id] = struct{}{}
	}
	return nil
}

// undo takes back an add.
func (l *ledger) undo(t tag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick([]tag{t})
	l.room.Broadcast()
}

// waitMarked waits until every event read so far is marked, be its commit
// read or not.
func (l *ledger) waitMarked(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool { return l.open == 0 && len(l.stops) == 0 })
}

// waitAcked waits until every acknowledged event is marked and every stop noted.
func (l *ledger) waitAcked(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool { return l.unwritten == 0 && len(l.stops) == 0 })
}

// waitCommit waits until every event of commit n is marked or kept back.
func (l *ledger) waitCommit(ctx context.Context, n uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool {
		gone := n-l.first >= uint64(l.count) // also where n is below first
		return (gone || l.at(n).open == 0) && len(l.stops) == 0
	})
}

// last is behind the last commit; passed tells whether all before it are done and
// every stop is noted.
func (l *ledger) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + uint64(l.count)
}

func (l *ledger) passed(last uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first >= last && len(l.stops) == 0
}

// inTheAir are the events between reading and mark, if flying keeps them.
func (l *ledger) inTheAir() map[uuid.UUID]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.flying)
}

// wait waits, with l.mu held, until ok. It ends early with the session's
// failure or with ctx.
func (l *ledger) wait(ctx context.Context, ok func() bool) error {
	if l.err == nil && ctx.Err() == nil && !ok() {
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

func (l *ledger) commit(n uint64, end wal.LSN) {
	l.mu.Lock()
	c := l.at(n)
	c.end, c.closed = end, true
	idle := c.open == 0
	l.merge(n)
	l.mu.Unlock()
	if idle { // nothing of it will come by: it waits for this alone
		l.signal()
	}
}

// merge lets the commit before the last one, n, stand for n too if nothing of
// n is open: servers before 15 send every transaction, and those without an
// event would pile up while the broker is away.
func (l *ledger) merge(n uint64) {
	c := l.at(n)
	if c.open > 0 || l.count < 2 {
		return
	}
	before := l.at(n - 1)
	before.end = max(before.end, c.end)
	*c = commit{}
	l.count--
}

func (l *ledger) acknowledge(b *batch) {
	l.mu.Lock()
	l.acked = append(l.acked, b)
	l.unwritten++
	first := len(l.acked) == 1
	l.mu.Unlock()
	if first {
		l.signal()
	}
}

// stop is a partition that takes nothing more, which must be written down
// before anything behind it is confirmed.
type stop struct {
	place
	event      uuid.UUID
	err        error
	partitions int   // of the topic at the time
	tags       []tag // of the records that were queued, which stay in the outbox
}

func (l *ledger) stop(s stop) {
	l.mu.Lock()
	l.stops = append(l.stops, s)
	l.mu.Unlock()
	l.signal()
}

// take gives the marker what there is to write. The slice is the caller's
// until [ledger.written].
func (l *ledger) take(spare []*batch) (acked []*batch, stops []stop, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	acked, l.acked = l.acked, spare[:0]
	stops = append(stops, l.stops...)
	return acked, stops, l.closed
}

// lsns puts the LSN of each tag's commit in to.
func (l *ledger) lsns(tags []tag, to []wal.LSN) []wal.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range tags {
		to = append(to, l.at(tags[i].commit).lsn)
	}
	return to
}

// committed is when the transaction of t committed.
func (l *ledger) committed(t *tag) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at(t.commit).time
}

// written ticks off what the marker has written and returns the position up to
// which all is done, zero if it did not move.
func (l *ledger) written(acked []*batch, stops []stop) wal.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range acked {
		l.tick(b.Tags)
	}
	l.unwritten -= len(acked)
	for i := range stops {
		l.tick(stops[i].tags)
	}
	if len(acked) > 0 || len(stops) > 0 { // what was read is not what fails
		l.limit = l.full
	}
	l.stops = l.stops[:copy(l.stops, l.stops[len(stops):])]
	l.room.Broadcast()
	if len(l.stops) > 0 {
		return 0 // what is kept back behind it counts as done: not before it is written down
	}
	return l.advance()
}

func (l *ledger) tick(tags []tag) {
	for i := range tags {
		l.at(tags[i].commit).open--
		l.bytes -= int(tags[i].size)
		delete(l.flying, tags[i].id)
	}
	l.open -= len(tags)
}

// drop takes back an event that will never be acknowledged.
func (l *ledger) drop(t tag) {
	l.undo(t)
	l.signal()
}

// advance drops the oldest commits that are done.
func (l *ledger) advance() (end wal.LSN) {
	for l.count > 0 {
		c := l.at(l.first)
		if !c.closed || c.open > 0 {
			break
		}
		end = max(end, c.end)
		*c = commit{}
		l.first++
		l.count--
	}
	return end
}

// idle tells whether nothing is between reading and confirmation.
func (l *ledger) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count == 0 && len(l.stops) == 0
}

func (l *ledger) inFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// fail ends the session.
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
