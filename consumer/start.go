package consumer

// What can be wrong with a saved position.
const (
	faultNone      = ""
	faultRecreated = "recreated"  // the topic is another one under the same name
	faultBeyondEnd = "beyond_end" // the log ends before it: cut back or restored
	faultExpired   = "expired"    // the log begins after it: unread records are gone
)

// bounds is what the broker has of a partition.
type bounds struct {
	topicID    [16]byte
	start, end int64
}

// begin decides where to read a partition from, given what is saved (nil for
// nothing: see settleNow), and what was wrong with it. Where records expired there
// is nothing to be decided: reading goes on with what is left. For the other
// faults see stops.
func (b bounds) begin(saved *position) (offset int64, fault string) {
	switch {
	case saved == nil:
		return b.start, faultNone
	case saved.topicID != b.topicID:
		return b.start, faultRecreated
	case saved.next > b.end:
		return b.start, faultBeyondEnd
	case saved.next < b.start:
		return b.start, faultExpired
	}
	return saved.next, faultNone
}

// stops tells whether a fault is for a person to decide. The log is not the one
// that was read: whether its records are new, or copies of what was handled, or
// should never be handled, cannot be known from here.
func stops(fault string) bool { return fault == faultRecreated || fault == faultBeyondEnd }
