package consumer

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of a dead letter, beside those of the event, which it keeps as they
// were. All are text; times are RFC 3339.
const (
	HeaderDeadID           = "dlq-id" // of the death: a copy that is written twice has it twice
	HeaderDeadGroup        = "dlq-group"
	HeaderDeadSource       = "dlq-topic"
	HeaderDeadPartition    = "dlq-partition"
	HeaderDeadOffset       = "dlq-offset"
	HeaderDeadTimestamp    = "dlq-timestamp" // of the record
	HeaderDeadType         = "dlq-type"
	HeaderDeadKey          = "dlq-key"    // bytes, as the record's
	HeaderDeadReason       = "dlq-reason" // the last error
	HeaderDeadClass        = "dlq-error-class"
	HeaderDeadCause        = "dlq-cause"    // its id in lists
	HeaderDeadAttempts     = "dlq-attempts" // tries that failed
	HeaderDeadFirstFailure = "dlq-first-failure"
	HeaderDeadLastFailure  = "dlq-last-failure"
	HeaderDeadLeftOut      = "dlq-left-out" // what was too large to copy: "value", or "value and headers"
)

// maxDeadReason bounds the error in a copy's headers, in bytes.
const maxDeadReason = 1 << 10

// death is a dead event whose copy is due.
type death struct {
	seq      int64
	id       uuid.UUID
	first    bool // of its cause, among the dead of its group
	rec      kgo.Record
	typ      string
	tenant   string
	reason   string
	class    string
	cause    string
	causeID  string
	attempts int
	since    time.Time
	last     time.Time
}

// Sizes of a copy, each tried when the one before is too large.
const (
	copyWhole     = iota
	copyHeaders   // and the place, for as long as the source has it
	copyPlace     // alone
	copyTooLarge  // as even the place was
	leftOutValue  = "value"
	leftOutWithin = "value and headers"
)

// copyOf makes the record of a dead letter.
func (d *death) copyOf(group string, size int) *kgo.Record {
	out := &kgo.Record{Topic: DeadTopic(d.rec.Topic, group), Partition: 0, Key: d.rec.Key}
	if size < copyPlace {
		out.Headers = append(out.Headers, d.rec.Headers...)
	}
	add := func(name, value string) {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	reason := d.reason
	if len(reason) > maxDeadReason {
		reason = strings.ToValidUTF8(reason[:maxDeadReason], "")
	}
	add(HeaderDeadID, d.id.String())
	add(HeaderDeadGroup, group)
	add(HeaderDeadSource, d.rec.Topic)
	add(HeaderDeadPartition, strconv.Itoa(int(d.rec.Partition)))
	add(HeaderDeadOffset, strconv.FormatInt(d.rec.Offset, 10))
	add(HeaderDeadTimestamp, stamp(d.rec.Timestamp))
	add(HeaderDeadType, d.typ)
	add(HeaderDeadKey, string(d.rec.Key))
	add(HeaderDeadReason, reason)
	add(HeaderDeadClass, d.class)
	add(HeaderDeadCause, d.causeID)
	add(HeaderDeadAttempts, strconv.Itoa(d.attempts))
	add(HeaderDeadFirstFailure, stamp(d.since))
	add(HeaderDeadLastFailure, stamp(d.last))
	switch size {
	case copyWhole:
		out.Value = d.rec.Value
	case copyHeaders:
		add(HeaderDeadLeftOut, leftOutValue)
	default:
		add(HeaderDeadLeftOut, leftOutWithin)
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
