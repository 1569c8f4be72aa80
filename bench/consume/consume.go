// Package consume measures consumer groups: what handling each event's effects
// once costs against a transaction an event and against COPY, what slow
// handlers of many keys come to, and what one failing key costs the others.
//
// The group runs in this process, as it does in an application; the broker is
// another process. What was handled once is read back from the tables and held
// against what was published.
package consume

import (
	"errors"
	"fmt"
	"time"

	"github.com/waybillhq/waybill/bench/engine"
)

// Config is what to measure.
type Config struct {
	Engines engine.Config
	Events  int64 // published, and handled by each group

	Progress func(step string) // hears what is being done; may be nil
}

// Check refuses what cannot be measured, saying why.
func Check(cfg Config) error {
	if cfg.Events < minEvents || cfg.Events > 5_000_000 {
		return fmt.Errorf("%d events: want %d to 5000000", cfg.Events, minEvents)
	}
	return nil
}

// minEvents give each key five: fewer measure the start.
const minEvents = 5_000

// Load of the measurement.
const (
	keys        = 1000
	connections = 8                     // of the database, and workers that use them
	slow        = 10 * time.Millisecond // a handler that calls somebody
	slowWorkers = 512
)

// topicName is the topic of the measurement. It is the contract's, which stands
// in the program: one measurement at a time on a broker.
const topicName = "waybill.bench.consume"

var errBusy = errors.New("topic " + topicName + " is there already: another measurement runs on this broker, or one was killed and left it; then delete it")

// Result is one run. What was not measured is nil.
type Result struct {
	Name   string `json:"name"`
	Events int64  `json:"events"`

	// Handlers of one INSERT, each event's effect once, by 8 workers on 8
	// connections; the same INSERT in a transaction of its own, without broker,
	// claim or order, on the same connections; and their ratio.
	Plain     float64 `json:"events_per_s"`
	Tx        float64 `json:"limit_events_per_s"`
	PlainVsTx float64 `json:"plain_vs_tx"`

	// The plain group that also looks for gaps in the events' numbers, and holds
	// them; and how much of the plain one that is.
	Counted        float64 `json:"counted_events_per_s"`
	CountedVsPlain float64 `json:"counted_vs_plain"`

	// Handlers of sets, once, each set one INSERT; COPY of as many rows, 1000 a
	// transaction, on the same connections.
	Batch       float64 `json:"batch_events_per_s"`
	Copy        float64 `json:"copy_events_per_s"`
	BatchVsTx   float64 `json:"batch_vs_tx"`
	BatchVsCopy float64 `json:"batch_vs_copy"`

	// Handlers that take 10 ms, at least once, 1000 keys, 512 workers; and by
	// how much fewer events of the other keys pass when one key fails always.
	Keyed    float64 `json:"keyed_events_per_s"`
	Poisoned float64 `json:"poisoned_cost"`

	// Of this process while the plain group ran, load and all.
	CPU  *float64 `json:"cpu_s"`
	Peak *float64 `json:"rss_peak_mb"` // of the whole run

	// Of the groups with effects once.
	Lost       int64 `json:"lost"`
	Reordered  int64 `json:"reordered"`
	Duplicates int64 `json:"duplicates"`

	Postgres string  `json:"postgres"`
	Cores    int     `json:"cores"`
	Seconds  float64 `json:"took_s"`
}
