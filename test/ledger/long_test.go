package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/waybillhq/waybill/event"
)

// A transaction stays open all the while, with an event of its own and locks on
// every partition, and holds back what vacuum and the slot may forget. Others
// write and are published, also by a relay that starts meanwhile and has a day's
// partition to make.
func TestLongTransactionHoldsNobodyUp(t *testing.T) {
	beside(t)
	h := newHouse(t, modes[0])
	r := h.startRelay()
	h.begin()
	h.dropLastDay()
	long, err := h.db.Begin(t.Context())
	h.must(err)
	defer func() { _ = long.Rollback(context.Background()) }()
	w := &writers{h: h}
	a := attempt{name: "long", fate: committed}
	h.must(w.add(t.Context(), long, &a, "long", 1))
	_, err = long.Exec(t.Context(), `SELECT count(*) FROM waybill.outbox_events, waybill.outbox_published`)
	h.must(err)

	others := h.write(seed(t), 6)
	h.flows("beside a long transaction")
	for range 2 {
		h.must(r.kill())
		h.must(r.start(t.Context()))
		h.flows("by a relay started beside a long transaction")
	}
	h.flowsFor(3 * time.Second)
	others.stop()
	facts := h.settle(others)
	h.eventually(time.Minute, func() (bool, string) {
		some, n := h.tail.missing(facts)
		return n == 0, fmt.Sprintf("beside a long transaction %d events are not published, as %v", n, some)
	})
	if h.tail.has(a.tokens[0]) {
		t.Error("an event was published before it committed")
	}
	h.must(long.Commit(t.Context()))
	others.attempts = append(others.attempts, a)
	h.reckon(others)
	h.atRest()
}

// dropLastDay drops the last of the partitions made ahead, which the next relay
// to start then misses.
func (h *house) dropLastDay() {
	h.t.Helper()
	const last = `SELECT max(inhrelid::regclass::text) FROM pg_inherits
		WHERE inhparent = 'waybill.outbox_events'::regclass AND inhrelid::regclass::text !~ 'default'`
	var name string
	h.eventually(time.Minute, func() (bool, string) { // the relay's are all there
		n := h.number(`SELECT count(*) FROM pg_inherits WHERE inhparent = 'waybill.outbox_events'::regclass`)
		return n >= 9, fmt.Sprintf("%d partitions", n)
	})
	h.must(h.db.QueryRow(h.t.Context(), last).Scan(&name))
	h.exec(`DROP TABLE ` + name)
}

// flowsFor holds the load up for a while.
func (h *house) flowsFor(d time.Duration) {
	h.t.Helper()
	pause(h.t.Context(), d)
	h.flows("after a while")
}

// probeAgain commits one more event and waits for it.
func (h *house) probeAgain() {
	h.t.Helper()
	ctx := event.WithTenant(h.t.Context(), "t1")
	tx, err := h.db.Begin(ctx)
	h.must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	w := &writers{h: h}
	a := attempt{name: "again"}
	h.must(w.add(ctx, tx, &a, "probe", 1))
	h.must(tx.Commit(ctx))
	h.eventually(time.Minute, func() (bool, string) {
		return h.tail.has(a.tokens[0]), "one more event is not published"
	})
}
