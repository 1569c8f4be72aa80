package outbox

import (
	"errors"
	"fmt"
	"time"
)

// ErrOverloaded is what every *OverloadError is; compare with errors.Is.
var ErrOverloaded = errors.New("the outbox takes no events just now")

// OverloadReason is why a [Gate] is closed.
type OverloadReason string

// The reasons.
const (
	BacklogOverBudget OverloadReason = "backlog"      // too many events wait to be published
	WALOverBudget     OverloadReason = "wal"          // the slot holds back too much WAL
	SlotMissing       OverloadReason = "slot missing" // message mode: what is written now would be lost
	SlotLost          OverloadReason = "slot lost"    // message mode: it is, or is about to be
	SlotUnseen        OverloadReason = "slot unseen"  // message mode: the gate has not looked yet
)

// OverloadError refuses an event for no fault of its own: events are written
// faster than they are carried away, or are not carried away at all. Nothing
// was written; the same event may be written later.
type OverloadError struct {
	Reason              OverloadReason
	Backlog, MaxBacklog int64         // events; Backlog is counted up to one above the bound
	WAL, MaxWAL         int64         // bytes
	RetryAfter          time.Duration // until the gate looks again
}

func (e *OverloadError) Error() string {
	return fmt.Sprintf("%v: %s; see waybill outbox status, and try again in %s", ErrOverloaded, e.Cause(), e.RetryAfter.Round(time.Second))
}

// Cause is why, without what to do.
func (e *OverloadError) Cause() string {
	what := "it has not seen the relay's replication slot yet"
	switch e.Reason {
	case BacklogOverBudget:
		what = fmt.Sprintf("more than %d events wait to be published", e.MaxBacklog)
	case WALOverBudget:
		what = fmt.Sprintf("the relay's replication slot holds back %d MiB of WAL, the limit is %d MiB", e.WAL>>20, e.MaxWAL>>20)
	case SlotMissing:
		what = "there is no replication slot that an event would be read from: start the relay"
	case SlotLost:
		what = "the relay's replication slot is lost, or about to be"
	case SlotUnseen:
	}
	return what
}

// Is tells that every OverloadError is ErrOverloaded.
func (e *OverloadError) Is(target error) bool { return target == ErrOverloaded }
