package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// spot is where a record stands in the log.
type spot struct {
	partition int32
	offset    int64
}

func (s spot) String() string { return fmt.Sprintf("%d@%d", s.partition, s.offset) }

// awaitMarks waits until every row is marked. Only then is the log to be read: a
// relay whose marks went down with Postgres appends copies until it is at rest,
// long after each event is in the log.
func (h *house) awaitMarks() {
	h.t.Helper()
	h.eventually(time.Minute, func() (bool, string) {
		n, err := ask[int64](h.t.Context(), h.db, `SELECT count(*) FROM waybill.outbox_events e
			WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`)
		return err == nil && n == 0, fmt.Sprintf("%d rows have no mark, %v", n, err)
	})
}

// checkMarks: a mark says where its event is.
func (h *house) checkMarks(log []entry) {
	h.t.Helper()
	at := map[string][]spot{}
	for _, e := range log {
		at[e.id] = append(at[e.id], spot{e.partition, e.offset})
	}
	wrong, unplaced := 0, 0
	for id, marks := range h.marks() {
		for _, m := range marks {
			if m.offset < 0 { // the broker knew the batch already, and not from where
				unplaced++
			} else if !slices.Contains(at[id], m) {
				if wrong++; wrong <= 5 {
					h.t.Errorf("the marks of event %s are %v, the log has it at %v", id, marks, at[id])
				}
			}
		}
	}
	if unplaced > 0 {
		h.t.Logf("%d marks without a place", unplaced)
	}
}

// marks are by event.
func (h *house) marks() map[string][]spot {
	h.t.Helper()
	rows, err := h.db.Query(h.t.Context(), `SELECT id::text, log_partition, log_offset FROM waybill.outbox_published ORDER BY published_at`)
	h.must(err)
	marks := map[string][]spot{}
	var id string
	var s spot
	_, err = pgx.ForEachRow(rows, []any{&id, &s.partition, &s.offset}, func() error {
		marks[id] = append(marks[id], s)
		return nil
	})
	h.must(err)
	return marks
}
