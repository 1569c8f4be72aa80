package outbox

import (
	"context"
	"fmt"
	"time"
)

const (
	lookTimeout = 5 * time.Second
	// countTimeout is for a partition that has been stopped for days: all that
	// was written since is then looked at.
	countTimeout = 2 * time.Minute
	// costShare is how much longer than a look the pause after it is.
	costShare = 19
	// maxRetryAfter bounds what a refused writer is told, who does not know
	// that the gate may open sooner.
	maxRetryAfter = 30 * time.Second
)

// slotView is the slot as the server sees it.
type slotView struct {
	exists bool
	lag    *int64 // bytes of WAL since the confirmed position; nil while the slot is being made
	kept   *int64 // bytes of WAL kept; nil for a slot that is lost
	status string // wal_status
	limit  *int64 // max_slot_wal_keep_size in bytes, nil if it is not set
	server int64  // its system identifier
	xmax   int64  // no transaction has this xid or a higher one
	below  int64  // every event of a lower xid is published
}

// look asks the database. wait is the time until the next look.
func (g *Gate) look(ctx context.Context) (s GateState, wait time.Duration) {
	s = g.State()
	began := time.Now()
	slot, err := g.askSlot(ctx)
	if s.Err = err; err != nil {
		return s, g.cfg.Interval
	}
	wait = g.pause(time.Since(began))
	s.MaxWAL = g.maxWAL(slot)
	g.wal.set(slot.used(), s.MaxWAL)
	s.WAL = g.wal.value
	if !g.cfg.Message && !time.Now().Before(g.countAt) {
		g.countErr = g.count(ctx, slot)
		s.Backlog, s.Oldest = g.backlog.value, g.oldest
	}
	s.Err = g.countErr // until a count succeeds
	s.Closed = g.closed(s, slot, wait)
	if s.Closed != nil && s.Closed.Reason == SlotMissing {
		wait /= 10 // the relay is about to make it, and everybody waits
	}
	return s, wait
}

// pause is how long to leave the database alone after work of that cost.
func (g *Gate) pause(cost time.Duration) time.Duration { return max(g.cfg.Interval, costShare*cost) }

// used is the WAL to hold against the bound. A slot holds back more than the
// relay has to read: also what a long transaction may still need.
func (v slotView) used() *int64 {
	if v.kept != nil {
		return v.kept
	}
	return v.lag
}

func (g *Gate) maxWAL(v slotView) int64 {
	bound := g.cfg.MaxWAL
	if bound <= 0 && v.limit == nil {
		bound = DefaultMaxWAL
	}
	if v.limit != nil && (bound <= 0 || g.cfg.Message) {
		half := *v.limit / 2
		if bound <= 0 || half < bound {
			bound = half
		}
	}
	return bound
}

// closed is why writers are refused, nil if they are not.
func (g *Gate) closed(s GateState, v slotView, wait time.Duration) *OverloadError {
	e := OverloadError{MaxBacklog: s.MaxBacklog, MaxWAL: s.MaxWAL, RetryAfter: wait}
	if s.Backlog != nil {
		e.Backlog = *s.Backlog
	}
	if s.WAL != nil {
		e.WAL = *s.WAL
	}
	switch {
	case g.cfg.Message && (!v.exists || v.lag == nil && v.status != "lost"):
		e.Reason = SlotMissing
	case g.cfg.Message && (v.status == "lost" || v.status == "unreserved"):
		e.Reason = SlotLost
	case g.wal.over:
		e.Reason = WALOverBudget
	case g.backlog.over:
		e.Reason, e.RetryAfter = BacklogOverBudget, time.Until(g.countAt)
	default:
		return nil
	}
	e.RetryAfter = min(max(e.RetryAfter, time.Second), maxRetryAfter)
	return &e
}

func (g *Gate) askSlot(ctx context.Context) (v slotView, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err = g.db.QueryRow(ctx, `SELECT s.slot_name IS NOT NULL, pg_wal_lsn_diff(w.here, s.confirmed_flush_lsn)::bigint,
			pg_wal_lsn_diff(w.here, s.restart_lsn)::bigint, coalesce(s.wal_status, ''),
			(SELECT nullif(setting::bigint, -1) * 1024 * 1024 FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
			me.system_identifier, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, coalesce((`+publishedBelow+`), 0)
		FROM (SELECT pg_current_wal_lsn() AS here) w CROSS JOIN pg_control_system() me LEFT JOIN pg_replication_slots s ON s.slot_name = $1`, g.cfg.Slot).
		Scan(&v.exists, &v.lag, &v.kept, &v.status, &v.limit, &v.server, &v.xmax, &v.below)
	if err != nil {
		return v, fmt.Errorf("look at slot %s: %w", g.cfg.Slot, err)
	}
	if g.cfg.Poll {
		v.exists, v.lag, v.kept, v.status = false, nil, nil, ""
	}
	return v, nil
}

// count counts the backlog. One that takes too long is tried again after
// twenty times as long, like one that ends.
func (g *Gate) count(ctx context.Context, slot slotView) error {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	if slot.server != g.server || g.below > slot.xmax { // not the server it was: its xids are others
		g.server, g.below = slot.server, 0
	}
	// A slot made anew begins at 0, and what was marked stays marked.
	g.below = max(g.below, slot.below)
	began := time.Now()
	b, err := ReadBacklog(ctx, g.db, g.below, g.cfg.MaxBacklog+1, 0)
	g.countAt = time.Now().Add(g.pause(time.Since(began)))
	if err != nil {
		return err
	}
	g.backlog.set(&b.Events, g.cfg.MaxBacklog)
	g.oldest = b.Oldest
	return nil
}
