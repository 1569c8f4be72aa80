// Package relay measures the way of events from the outbox to the log: how
// fast and at what cost a backlog is drained, how long one event takes, and
// how much goes through while others write.
//
// The relay measured is `waybill run relay` in a process of its own, as an
// operator runs it; the broker is another process. What came out of each topic
// is read back and held against what was written.
package relay

import (
	"time"

	"github.com/waybillhq/waybill/bench/engine"
)

// Modes of the relay.
const (
	WAL     = "wal"     // reads outbox rows from the replication slot
	Poll    = "poll"    // reads unmarked rows by SQL
	Message = "message" // reads logical messages, no table
	EOS     = "eos"     // wal, publishing in Kafka transactions
)

// Modes is every mode.
func Modes() []string { return []string{WAL, Poll, Message, EOS} }

// mode is what a mode means for the measurement.
type mode struct {
	relay string // WAYBILL_OUTBOX_RELAY
	exact bool   // WAYBILL_OUTBOX_EXACTLY_ONCE
	slot  bool   // it reads a replication slot
	table bool   // events stand in a table and are marked
}

var modes = map[string]mode{
	WAL:     {relay: "wal", slot: true, table: true},
	Poll:    {relay: "poll", table: true},
	Message: {relay: "message", slot: true},
	EOS:     {relay: "wal", exact: true, slot: true, table: true},
}

// Config is what to measure.
type Config struct {
	Engines engine.Config
	Mode    string
	Events  int64         // of the backlog
	Rate    int           // events a second while the time of one is taken
	Latency time.Duration // length of that load; 0 leaves it out
	Sustain time.Duration // length of writing as fast as can be; 0 leaves it out

	Progress func(step string) // hears what is being done; may be nil
}

// Result is one run. What was not measured is nil.
type Result struct {
	Name   string `json:"name"`
	Mode   string `json:"mode"`
	Events int64  `json:"events"` // of the backlog

	// The backlog drained and marked, from the moment the relay has its slot
	// (where it has none: from the last moment without a mark) to the last mark.
	// Messages are not marked: to the last record in the log.
	PerSecond float64 `json:"events_per_s"`
	// The same WAL read by pg_recvlogical into nothing, once before and once
	// after the relay: events over the mean of both.
	Limit *float64 `json:"limit_events_per_s"`
	Ratio *float64 `json:"ratio"` // of the two

	// As above, by a relay that marks nothing, on a backlog of its own, to the
	// last record in the log.
	PerSecondNoMarks *float64 `json:"events_per_s_no_marks"`
	LimitNoMarks     *float64 `json:"limit_events_per_s_no_marks"`
	RatioNoMarks     *float64 `json:"ratio_no_marks"`

	// Of the relay's process while it drained with marks.
	CPU          *float64 `json:"cpu_s"`
	PerCPUSecond *float64 `json:"events_per_cpu_s"`
	RSS          *float64 `json:"rss_mb"`      // of a relay that has nothing to do, before any backlog
	Peak         *float64 `json:"rss_peak_mb"` // the most while draining

	// One event at Rate, from the return of its commit to a consumer that
	// holds it: relay, durable in the broker, and a fetch that was waiting.
	Rate int      `json:"rate"`
	Mean *float64 `json:"mean_ms"`
	P50  *float64 `json:"p50_ms"`
	P99  *float64 `json:"p99_ms"`

	// Writers as fast as they can: what they committed, what was published and
	// marked in the same time, and what was left when they stopped.
	SustainedWritten *float64 `json:"sustained_written_per_s"`
	Sustained        *float64 `json:"sustained_events_per_s"`
	SustainedBacklog *int64   `json:"sustained_backlog"`

	// Over all of it.
	Lost       int64 `json:"lost"`
	Reordered  int64 `json:"reordered"`
	Duplicates int64 `json:"duplicates"`

	Postgres string   `json:"postgres"`
	Cores    int      `json:"cores"`
	Seconds  float64  `json:"took_s"`          // the whole run
	Notes    []string `json:"notes,omitempty"` // why something is nil
}
