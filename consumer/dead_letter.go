package consumer

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
)

// DeadLetter is a record that a group gave up, for those who write its copy
// themselves. Groups of this package do that by their parked table.
type DeadLetter struct {
	ID       uuid.UUID // of the death
	Group    string
	Record   *kgo.Record
	Type     string
	Reason   error
	Class    string
	Attempts int // that failed
	First    time.Time
	Last     time.Time // of the failures
}

// Sizes is how many forms [DeadLetter.Copy] has: whole, without the value, and
// without the value and the headers.
const Sizes = copyTooLarge

// Copy is the record of the letter, on the topic that [DeadTopic] names. Of its
// sizes 0 is the whole; each is for where the one before is too large.
func (l DeadLetter) Copy(size int) *kgo.Record {
	reason := strings.ToValidUTF8(l.Reason.Error(), "�")
	_, cause := causeOf(reason)
	d := death{
		id: l.ID, rec: *l.Record, typ: l.Type, reason: reason, class: l.Class,
		causeID: cause, attempts: l.Attempts, since: l.First, last: l.Last,
	}
	return d.copyOf(l.Group, size)
}
