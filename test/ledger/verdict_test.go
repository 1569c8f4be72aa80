package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// reckon holds the log against what committed, once that is published.
func (h *house) reckon(w *writers) {
	h.t.Helper()
	var facts map[string]fact
	h.eventually(time.Minute, func() (bool, string) { // Postgres may be recovering
		err := h.db.Ping(h.t.Context())
		return err == nil, fmt.Sprint(err)
	})
	facts = h.settle(w)
	began := time.Now()
	h.eventually(2*time.Minute, func() (bool, string) {
		some, n := h.tail.missing(facts)
		return n == 0, fmt.Sprintf("%d of %d events are not in the log: %v and others", n, len(facts), some)
	})
	h.t.Logf("all was published %s after the last write", time.Since(began).Round(time.Millisecond))
	if h.mode.table {
		h.awaitMarks()
	}
	log := h.readLog()
	h.checkLog(facts, log)
	if h.mode.table {
		h.checkMarks(log)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, err := range h.troubles {
		h.t.Error(err)
	}
}

// checkLog: each fact's first copy is in its place, and there is nothing else.
func (h *house) checkLog(facts map[string]fact, log []entry) {
	h.t.Helper()
	first := map[string]entry{} // by event id
	told := map[string]string{} // token to event id
	at := map[string]int32{}    // partition of each key
	last := map[string]int64{}  // of each key's first copies
	copies, disorder := 0, 0
	for _, e := range log {
		if p, ok := at[e.key]; ok && p != e.partition {
			h.t.Errorf("key %s is in partitions %d and %d", e.key, p, e.partition)
		}
		at[e.key] = e.partition
		if before, again := first[e.id]; again {
			copies++
			if before.content != e.content {
				h.t.Errorf("event %s is another at %d@%d than at %d@%d", e.id, e.partition, e.offset, before.partition, before.offset)
			}
			continue
		}
		first[e.id] = e
		if other, ok := told[e.token]; ok {
			h.t.Errorf("fact %s has two ids, %s and %s", e.token, other, e.id)
		}
		told[e.token] = e.id
		if f, ok := facts[e.token]; !ok {
			h.t.Errorf("the log has %s, which did not commit", e.token)
		} else if f.aggregate != e.key || f.n != e.n {
			h.t.Errorf("the log has %s as %s:%d, it is %s:%d", e.token, e.key, e.n, f.aggregate, f.n)
		}
		if e.n != last[e.key]+1 && disorder < 10 {
			disorder++
			h.t.Errorf("key %s goes on with %d after %d at %d@%d", e.key, e.n, last[e.key], e.partition, e.offset)
		}
		last[e.key] = e.n
	}
	for token := range facts {
		if _, ok := told[token]; !ok {
			h.t.Errorf("fact %s is lost", token)
		}
	}
	h.t.Logf("the log has %d events in %d records, %d of them copies", len(told), len(log), copies)
	if h.mode.once && copies > 0 {
		h.t.Errorf("%d copies where there may be none", copies)
	}
}

// atRest: nothing is stopped, and where a slot is read, it is being read.
func (h *house) atRest() {
	h.t.Helper()
	if n := h.number(`SELECT count(*) FROM waybill.outbox_stopped`); n != 0 {
		h.t.Errorf("%d partitions are stopped", n)
	}
	if !h.mode.slot {
		return
	}
	h.eventually(time.Minute, func() (bool, string) {
		active, err := h.slotActive(h.t.Context())
		return active, fmt.Sprintf("the slot is not read: %v", err)
	})
}

func (h *house) slotActive(ctx context.Context) (active bool, err error) {
	active, err = ask[bool](ctx, h.db, `SELECT active FROM pg_replication_slots WHERE database = current_database()`)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errors.New("there is none")
	}
	return active, err
}
