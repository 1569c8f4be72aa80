package outbox

import (
	"time"
)

// Figures are what a [Gate] goes by, for who has read them already. Nil is
// unknown.
type Figures struct {
	SlotExists bool
	Lag        *int64 // bytes of WAL since the slot's confirmed position
	Kept       *int64 // bytes of WAL that the server keeps for it
	KeepLimit  *int64 // max_slot_wal_keep_size in bytes, nil if it is not set
	WALStatus  string
	Backlog    *int64 // events
}

// Standing is where figures stand beside the budgets.
type Standing struct {
	MaxBacklog int64          // events past which writers are refused; 0 in mode message, which counts none
	MaxWAL     int64          // bytes past which writers are refused; 0 where no slot counts
	Closed     *OverloadError // why writers are refused, nil if they are not
	// Lingering tells that a gate which was closed has not opened yet: it opens
	// below four fifths of its budget.
	Lingering bool
}

// Weigh is what a gate of that configuration makes of figures. It asks nobody.
func Weigh(cfg GateConfig, f Figures) Standing {
	g := NewGate(nil, cfg)
	v := slotView{exists: f.SlotExists, lag: f.Lag, kept: f.Kept, limit: f.KeepLimit, status: f.WALStatus}
	if cfg.Poll {
		v = slotView{limit: f.KeepLimit}
	}
	s := GateState{MaxBacklog: g.cfg.MaxBacklog, MaxWAL: g.maxWAL(v), Backlog: f.Backlog, WAL: v.used()}
	g.wal.set(s.WAL, s.MaxWAL)
	g.countAt = time.Now().Add(g.cfg.Interval)
	out := Standing{MaxWAL: s.MaxWAL}
	if !cfg.Message {
		out.MaxBacklog = s.MaxBacklog
		g.backlog.set(s.Backlog, s.MaxBacklog)
		out.Lingering = lingers(s.Backlog, s.MaxBacklog)
	}
	if !v.exists {
		out.MaxWAL = 0
	}
	out.Lingering = out.Lingering || lingers(s.WAL, s.MaxWAL)
	out.Closed = g.closed(s, v, g.cfg.Interval)
	return out
}

func lingers(v *int64, bound int64) bool { return v != nil && *v <= bound && *v >= opensBelow(bound) }
