package consumer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Gaps is what a group does about events that are missing, as their numbers
// tell: ce_sequence, the version of the aggregate that the event's author gave
// it. A group that looks takes the events of a topic, tenant and key to be
// numbered one by one, or several under one number; those without a number are
// not looked at. Events of the topic that the group does not handle, for want of
// a handler or by its filter, are counted all the same: they are no gap.
//
// The first event of a key that the group sees, and the first after a reset, is
// taken as it is: nothing before it is missing. So is one of a key of which
// nothing was heard for Config.InboxKeep.
//
// What is known to have been given up leaves no gap: events dropped by the
// group's policy or an operator and, where the outbox is in the same database,
// events skipped there, for as long as it keeps their rows. Events added for later
// should bear no number: theirs is of the moment they were added.
type Gaps int

const (
	// IgnoreGaps does not look at numbers, and costs nothing.
	IgnoreGaps Gaps = iota
	// ReportGaps tells what is missing, once, and goes on at once.
	ReportGaps
	// HoldGaps has an event wait, and its key with it, until those missing
	// before it have come, for Config.GapWait at most. It then tells what is
	// missing and goes on. An event that comes behind a higher number of its key
	// is dead.
	HoldGaps
	// StopAtGaps is HoldGaps, but the event is dead after the wait: its key goes
	// on when what was missing comes, or when an operator has the event redriven,
	// which is to go on without, or drops it.
	StopAtGaps
)

func (g Gaps) holds() bool { return g == HoldGaps || g == StopAtGaps }

const (
	classGap  = "gap"
	classLate = "late"
	// classNoHandler is of parked events that nobody handles any more.
	classNoHandler = "no handler"
)

// checkGaps refuses what does not go with counting.
func (c Config) checkGaps() error {
	switch {
	case c.Gaps < IgnoreGaps || c.Gaps > StopAtGaps:
		return fmt.Errorf("gaps %d are none: use the constants of package consumer", c.Gaps)
	case c.Gaps == IgnoreGaps:
		return nil
	case c.Delivery != Once:
		return fmt.Errorf("numbers are counted in the transaction of an event's effects, and delivery %s has none: set Gaps to IgnoreGaps, or Delivery to Once", c.Delivery)
	case c.Ordering == Unordered:
		return errors.New("a group without order cannot tell what is missing from what comes later: set Gaps to IgnoreGaps, or Ordering to ByKey")
	case c.Ordering == ByPartition && c.Gaps.holds():
		return errors.New("a missing event could come only behind the one that waits for it, where a partition keeps its order: set Gaps to ReportGaps, or Ordering to ByKey")
	case c.GapWait >= c.InboxKeep:
		return fmt.Errorf("it would wait %s for a missing event and remember numbers for %s: set GapWait to less than InboxKeep", c.GapWait, c.InboxKeep)
	}
	return nil
}

// gapLook is when an event that is held for so long looks again whether what is
// missing has come by another partition, or was given up; what comes by its own
// wakes it.
func (c Config) gapLook(held time.Duration) time.Duration {
	return min(max(held/4, 100*time.Millisecond), 5*time.Second, max(c.GapWait-held, 0))
}

// span is numbers that are missing, from first to last.
type span struct{ first, last int64 }

func (s span) String() string {
	if s.first == s.last {
		return strconv.FormatInt(s.first, 10)
	}
	return fmt.Sprintf("%d to %d", s.first, s.last)
}

func countOf(spans []span) (n int64) {
	for _, s := range spans {
		n += s.last - s.first + 1
	}
	return n
}

// maxSpansTold bounds an error's text.
const maxSpansTold = 5

func tellSpans(spans []span) string {
	var out []string
	for i, s := range spans {
		if i == maxSpansTold {
			out = append(out, "…")
			break
		}
		out = append(out, s.String())
	}
	return strings.Join(out, ", ")
}

// gapError is an event before which numbers are missing.
type gapError struct {
	last, sequence int64
	untold         []span // what nobody was told of yet
	missing        []span
}

func (e *gapError) Error() string {
	return fmt.Sprintf("number %d of its key came after number %d: missing %s", e.sequence, e.last, tellSpans(e.missing))
}

// lateError is an event that was never handled, behind a higher number.
type lateError struct{ last, sequence int64 }

func (e *lateError) Error() string {
	return fmt.Sprintf("number %d of its key came when the group had handled number %d: have it tried now to handle it out of order, or drop it", e.sequence, e.last)
}
