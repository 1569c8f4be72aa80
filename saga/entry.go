package saga

import (
	"time"

	"github.com/google/uuid"
)

// What an entry of an instance's record says.
type What string

// All there is. The first five are events that were seen, the next two are what
// the deadlines brought about, the last two what an operator did.
const (
	Started What = "started"
	Done    What = "done"
	Failed  What = "failed"
	Undone  What = "undone"
	Aborted What = "aborted"
	Asked   What = "asked"   // a step was overdue and was asked for
	GaveUp  What = "gave_up" // it was asked for as often as is declared: an operator is needed
	Resumed What = "resumed" // an operator has it asked for anew
	Skipped What = "skipped" // an operator saw to a step by hand
)

// Direction is which way a saga goes.
type Direction string

// The directions.
const (
	Forward Direction = "forward"
	Back    Direction = "back"
)

// Entry is a line of an instance's record.
type Entry struct {
	ID        uuid.UUID `json:"id"` // of the event
	What      What      `json:"what"`
	Step      string    `json:"step,omitempty"`      // "" for started, aborted and resumed
	Direction Direction `json:"direction,omitempty"` // of asked, gave_up and skipped
	SeenAt    time.Time `json:"seen_at"`             // by the database's clock

	// Of an event.
	Type          string    `json:"type,omitempty"`
	Source        string    `json:"source,omitempty"`
	Time          time.Time `json:"time"` // when it happened; for what is no event, SeenAt
	CausationID   string    `json:"causation_id,omitempty"`
	CorrelationID string    `json:"correlation_id,omitempty"`

	// Of asked and gave_up.
	Asked int        `json:"asked,omitempty"` // which ask it was
	DueAt *time.Time `json:"due_at,omitempty"`

	// Of asked and skipped: the event that services were told by, once it was seen
	// in its topic.
	ToldAs *uuid.UUID `json:"told_as,omitempty"`

	// Of resumed and skipped.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// IsEvent tells an event that was seen from what was done about it.
func (e *Entry) IsEvent() bool {
	switch e.What {
	case Started, Done, Failed, Undone, Aborted:
		return true
	case Asked, GaveUp, Resumed, Skipped:
	}
	return false
}
