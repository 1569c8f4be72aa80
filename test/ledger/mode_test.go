package ledger

import (
	"time"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/outbox"
)

// mode is a way of carrying the outbox to the log.
type mode struct {
	name   string
	env    []string      // of the relays
	writes outbox.Config // of the writers
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
	{name: "message", env: []string{"WAYBILL_OUTBOX_RELAY=message"}, writes: outbox.Config{Messages: true}, slot: true, long: true},
	{name: "exactly once", env: []string{"WAYBILL_OUTBOX_EXACTLY_ONCE=true"}, table: true, slot: true, once: true, long: true},
	{
		name: "exactly once by polling", env: []string{"WAYBILL_OUTBOX_EXACTLY_ONCE=true", "WAYBILL_OUTBOX_RELAY=poll"},
		table: true, once: true, long: true,
	},
}

func (m mode) here() bool {
	return (wholeRun() || !m.long) && (brokertest.Kafka() || !m.once)
}

func (m mode) elsewhere() string {
	if m.once {
		return "transactions need a real Kafka: run by make test-kafka"
	}
	return "run by make test-ledger"
}

// begin waits until the relays carry a first event, and holds them to their
// mode: what they do is known by its traces.
func (h *house) begin() {
	h.t.Helper()
	if h.mode.slot { // without a table, nothing may be written before there is one
		h.eventually(time.Minute, func() (bool, string) {
			return h.number(`SELECT count(*) FROM waybill.outbox_slots WHERE complete_at IS NOT NULL`) > 0, "there is no slot"
		})
	}
	h.probe()
	rows := h.number(`SELECT count(*) FROM waybill.outbox_events`)
	slots := h.number(`SELECT count(*) FROM pg_replication_slots WHERE database = current_database()`)
	if h.mode.table != (rows > 0) || h.mode.slot != (slots > 0) || h.mode.once && h.tail.markers() == 0 {
		h.t.Fatalf("the relay does not work in mode %s: %d rows, %d slots, %d ends of transactions",
			h.mode.name, rows, slots, h.tail.markers())
	}
}
