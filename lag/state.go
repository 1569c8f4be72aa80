package lag

import (
	"fmt"
	"time"
)

// State is how a group does on a partition, one of a closed set.
type State string

// The states, from the mildest to the gravest. A group has the gravest of its
// partitions'.
const (
	OK        State = "ok"
	Warning   State = "warning"    // late
	Rewound   State = "rewound"    // its place went back: reset, or the topic is another one
	Unknown   State = "unknown"    // nobody can tell
	Firing    State = "firing"     // late for long, and not draining
	NoMembers State = "no members" // behind, and nobody reads
	Retention State = "retention"  // retention has overtaken it, or is about to
	Stalled   State = "stalled"    // behind and not moving, or a key that does not move
)

// States lists them all, from the mildest.
func States() []State {
	return []State{OK, Warning, Rewound, Unknown, Firing, NoMembers, Retention, Stalled}
}

func (s State) rank() int {
	for i, other := range States() {
		if s == other {
			return i
		}
	}
	return -1
}

func graver(a, b State) State {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// circumstance is all that a state is decided by.
type circumstance struct {
	lag      *int64
	seconds  *float64
	lost     int64          // events that went before they were read
	overtake *time.Duration // until retention is where the group is; nil: not in sight
	members  *int
	still    time.Duration // behind without moving
	late     time.Duration // for how long it has been late
	draining *bool
	rewound  *rewind // nil: not lately
	blocked  *Blocked
	at       int64 // where it stands
	error    string
	now      time.Time
}

// judge says the state, why, and the offset it is about. What is known to be
// bad comes before what is unknown, and of the bad what loses events first.
func (c Config) judge(s circumstance) (state State, why string, at *int64) {
	if s.lag == nil {
		return Unknown, s.error, nil
	}
	behind := *s.lag > 0
	switch {
	case s.lost > 0:
		return Retention, fmt.Sprintf("%d events went by retention before they were read", s.lost), &s.at
	case s.overtake != nil && *s.overtake <= c.RetentionWithin:
		return Retention, fmt.Sprintf("retention reaches its place in about %s", s.overtake.Round(time.Second)), &s.at
	case behind && s.members != nil && *s.members == 0:
		return NoMembers, "nobody reads: start a member of the group", nil
	case behind && s.still >= c.StallAfter:
		return Stalled, stalledText(s), &s.at
	case s.blocked != nil && s.now.Sub(s.blocked.Since) >= c.StallAfter:
		return Stalled, fmt.Sprintf("key %q waits behind a failing event, the others go on: %s", s.blocked.Key, s.blocked.Error), &s.blocked.Offset
	case s.rewound != nil:
		return Rewound, s.rewound.why, &s.at
	case behind && s.seconds == nil:
		return Unknown, "its time behind is not read yet", nil
	case s.late >= c.Sustained && s.draining != nil && !*s.draining:
		return Firing, fmt.Sprintf("late for %s and not draining", s.late.Round(time.Second)), nil
	case s.late > 0:
		return Warning, "late", nil
	}
	return OK, "", nil
}

func stalledText(s circumstance) string {
	text := fmt.Sprintf("no movement for %s", s.still.Round(time.Second))
	if s.blocked != nil {
		text += fmt.Sprintf("; key %q waits behind a failing event: %s", s.blocked.Key, s.blocked.Error)
	}
	return text
}
