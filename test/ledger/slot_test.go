package ledger

import (
	"fmt"
	"testing"
	"time"
)

// What the relay reads by is taken away from it while events are written. The
// rows have it all: they are published from the table, and it is told aloud.
func TestSlotAndPublicationLostUnderLoad(t *testing.T) {
	beside(t)
	h := newHouse(t, modes[0])
	h.addRelay()
	h.addRelay()
	h.keepAll()
	h.begin()
	w := h.write(seed(t), 6)
	h.flows("before")

	h.dropSlot()
	h.told("level=ERROR", "replication slot is gone")
	h.noted("slot_gone")
	h.flows("after the slot was dropped")

	h.exec(`DROP PUBLICATION waybill_outbox`)
	h.told("level=ERROR", "publication was gone")
	h.noted("publication_gone")
	h.noted("slot_lost")
	h.flows("after the publication was dropped")

	w.stop()
	h.reckon(w)
	h.atRest()
}

// dropSlot drops it in the moment the relay has lost it.
func (h *house) dropSlot() {
	h.t.Helper()
	h.eventually(time.Minute, func() (bool, string) {
		_, err := h.db.Exec(h.t.Context(), `SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE database = current_database() AND active`)
		h.must(err)
		_, err = h.db.Exec(h.t.Context(), `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()`)
		return err == nil, fmt.Sprintf("the slot cannot be dropped: %v", err)
	})
}

// told waits until one of the relays has printed a line with all of parts.
func (h *house) told(parts ...string) {
	h.t.Helper()
	h.eventually(time.Minute, func() (bool, string) {
		for _, r := range h.relays {
			if r.log.count(parts...) > 0 {
				return true, ""
			}
		}
		return false, fmt.Sprintf("no relay says %q", parts)
	})
}

// noted waits for an incident of the relay's.
func (h *house) noted(kind string) {
	h.t.Helper()
	h.eventually(time.Minute, func() (bool, string) {
		return h.number(`SELECT count(*) FROM waybill.incidents WHERE part = 'relay' AND kind = $1`, kind) > 0,
			"there is no incident " + kind
	})
}
