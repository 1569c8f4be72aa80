package cdc

import (
	"context"
	"sync"
	"time"

	"github.com/waybillhq/waybill/pg/wal"
)

// tx is a transaction of the stream on its way to the broker.
type tx struct {
	xid     uint32
	lsn     wal.LSN // of its commit
	time    time.Time
	changes int64 // read so far; of the reader alone

	// Guarded by flight.mu:
	end    wal.LSN // zero until the commit is read
	closed bool
	open   int // records that the broker has not acknowledged
	after  after
}

// after is what waits for a transaction.
type after struct {
	own []func() // until the broker has acknowledged all of it
	all []func() // until it has all before it, too
}

func call(waiting []func()) {
	for _, fn := range waiting {
		fn()
	}
}

// flight is what is between reading and the broker's word, in commit order.
// Records are acknowledged in any order; only the end of a commit before which
// nothing is open may be confirmed, since the server then forgets all before.
type flight struct {
	maxRecords, maxBytes int
	confirm              func(wal.LSN)

	mu      sync.Mutex
	room    *sync.Cond // something was acknowledged, or failed
	records int
	bytes   int // one record alone may be larger than maxBytes
	txs     []*tx
	err     error
	failed  chan struct{} // closed at the first failure
}

func newFlight(maxRecords, maxBytes int, confirm func(wal.LSN)) *flight {
	f := &flight{maxRecords: maxRecords, maxBytes: maxBytes, confirm: confirm, failed: make(chan struct{})}
	f.room = sync.NewCond(&f.mu)
	return f
}

func (f *flight) begin(t wal.Begin) *tx {
	x := &tx{xid: t.XID, lsn: t.CommitLSN, time: t.CommitTime}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.txs = append(f.txs, x)
	return x
}

// add counts one more record into x, waiting while too much is in flight,
// which holds back the socket and with it the server.
func (f *flight) add(ctx context.Context, x *tx, size int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	full := func() bool { return f.records >= f.maxRecords || f.bytes > 0 && f.bytes+size > f.maxBytes }
	if f.err == nil && full() {
		// Under the lock: a broadcast between check and Wait would be lost.
		stop := context.AfterFunc(ctx, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.room.Broadcast()
		})
		defer stop()
	}
	for f.err == nil && ctx.Err() == nil && full() {
		f.room.Wait()
	}
	if f.err != nil {
		return f.err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	x.open++
	f.records++
	f.bytes += size
	return nil
}

// commit closes x.
func (f *flight) commit(x *tx, end wal.LSN, then after) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.end, x.closed, x.after = end, true, then
	f.settle(x)
	f.merge()
}

// merge lets the commit before the last one stand for both if nothing of the
// last one is open: servers before 15 send every transaction, and those without
// a change would pile up while the broker is away.
func (f *flight) merge() {
	n := len(f.txs)
	if n < 2 || f.txs[n-1].open > 0 {
		return
	}
	before, last := f.txs[n-2], f.txs[n-1]
	before.end = max(before.end, last.end)
	before.after.all = append(before.after.all, last.after.all...)
	f.txs[n-1] = nil
	f.txs = f.txs[:n-1]
}

func (f *flight) acknowledge(x *tx, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.open--
	f.records--
	f.bytes -= size
	f.settle(x)
	f.room.Broadcast()
}

// settle says what follows from x having nothing open any more.
func (f *flight) settle(x *tx) {
	if !x.closed || x.open > 0 || f.err != nil {
		return
	}
	call(x.after.own)
	x.after.own = nil
	n := 0
	var end wal.LSN
	for ; n < len(f.txs) && f.txs[n].closed && f.txs[n].open == 0; n++ {
		end = max(end, f.txs[n].end)
		call(f.txs[n].after.all)
	}
	if n == 0 {
		return
	}
	// Moved to the front, so that the slice does not grow with the history.
	rest := copy(f.txs, f.txs[n:])
	clear(f.txs[rest:])
	f.txs = f.txs[:rest]
	f.confirm(end)
}

// idle calls fn if nothing is in flight, and nothing can be meanwhile.
func (f *flight) idle(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.txs) == 0 && f.err == nil {
		fn()
	}
}

func (f *flight) inFlight() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records
}

// fail ends the session: nothing from the failed record on may be confirmed.
func (f *flight) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return
	}
	f.err = err
	close(f.failed)
	f.room.Broadcast()
}

func (f *flight) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
