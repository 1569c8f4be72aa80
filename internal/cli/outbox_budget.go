package cli

import (
	"fmt"

	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
)

// budget is where the outbox stands beside what this configuration allows. A
// process that was given another one decides otherwise.
type budget struct {
	MaxBacklog *int64 `json:"max_backlog"`   // null: not counted in this mode
	MaxWAL     *int64 `json:"max_wal_bytes"` // null: no slot that counts
	Refused    *bool  `json:"writers_refused"`
	Why        string `json:"writers_refused_why,omitempty"`
	lingering  bool
}

func weigh(cfg config.Outbox, s relay.Status) budget {
	mode := relay.Mode(cfg.Relay)
	f := outbox.Figures{
		SlotExists: s.Slot.Exists, Lag: s.Slot.LagBytes, Kept: s.Slot.RetainedBytes, KeepLimit: s.Slot.KeepLimit, WALStatus: s.Slot.WALStatus,
	}
	// At least so many says enough where they are too many.
	if n := int64(s.Backlog); n >= 0 {
		f.Backlog = &n
	}
	at := outbox.Weigh(outbox.GateConfig{
		Slot: s.Slot.Name, Poll: mode == relay.Poll, Message: mode == relay.Message,
		MaxBacklog: cfg.MaxBacklog, MaxWAL: int64(cfg.MaxWAL), Logger: quiet(),
	}, f)
	b := budget{lingering: at.Lingering}
	if at.MaxBacklog > 0 {
		b.MaxBacklog = &at.MaxBacklog
	}
	if at.MaxWAL > 0 {
		b.MaxWAL = &at.MaxWAL
	}
	switch {
	case at.Closed != nil:
		b.Refused, b.Why = new(true), at.Closed.Cause()
	case mode != relay.Message && (s.Backlog < 0 || s.BacklogIsFloor): // what was counted is below the budget
	default:
		b.Refused = new(false)
	}
	return b
}

// row tells whether writers are let in, and up to where.
func (b budget) row() []string {
	text := "let in"
	switch {
	case b.Refused == nil:
		text = "unknown whether they are let in: the backlog was not counted to its end"
	case *b.Refused:
		text = "refused: " + b.Why
	case b.lingering:
		text = "let in, or still refused if they were before: they are let in again below four fifths of the budget"
	}
	switch {
	case b.MaxBacklog != nil && b.MaxWAL != nil:
		text += fmt.Sprintf("; the budget is %s and %s of WAL kept", plural(*b.MaxBacklog, "event"), size(*b.MaxWAL))
	case b.MaxBacklog != nil:
		text += "; the budget is " + plural(*b.MaxBacklog, "event")
	case b.MaxWAL != nil:
		text += fmt.Sprintf("; the budget is %s of WAL kept", size(*b.MaxWAL))
	}
	return []string{"writers", text}
}
