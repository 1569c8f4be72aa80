package ledger

import (
	"fmt"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// mode is a way of carrying the outbox to the log.
type mode struct {
	name string
	env  []string // of the relays
	// table: events are rows, and marked. slot: events are read from the WAL.
	table, slot bool
	// once: readers of committed records see no copies. On Kafka alone.
	once bool
	// long: only in runs of this package for its own sake.
	long bool
}

var modes = []mode{
	{name: "wal", table: true, slot: true},
	{name: "poll", env: []string{"WAYBILL_OUTBOX_RELAY=poll"}, table: true, long: true},
	{name: "message", env: []string{"WAYBILL_OUTBOX_RELAY=message"}, slot: true, long: true},
	{name: "exactly once", env: []string{"WAYBILL_OUTBOX_EXACTLY_ONCE=true"}, table: true, slot: true, once: true, long: true},
}

func (m mode) here(long bool) bool {
	return (long || !m.long) && (brokertest.Kafka() || !m.once)
}

func (m mode) elsewhere() string {
	if m.once {
		return "transactions need a real Kafka: run by make test-kafka"
	}
	return "run by make test-ledger"
}

// needMode skips the test where the relay was built without its mode: what it
// then does in its stead has a test of its own.
func (h *house) needMode() {
	h.t.Helper()
	h.probe()
	if why := h.otherMode(); why != "" {
		h.t.Skipf("this relay has no mode %s: %s", h.mode.name, why)
	}
}

// otherMode tells by its traces that the relay works in another mode.
func (h *house) otherMode() string {
	rows := h.number(`SELECT count(*) FROM waybill.outbox_events`)
	slots := h.number(`SELECT count(*) FROM pg_replication_slots WHERE database = current_database()`)
	switch {
	case !h.mode.table && rows > 0:
		return fmt.Sprintf("%d events are rows of the table", rows)
	case !h.mode.slot && slots > 0:
		return "it reads the WAL"
	case h.mode.once && h.tail.markers() == 0:
		return "it publishes without transactions"
	}
	return ""
}
