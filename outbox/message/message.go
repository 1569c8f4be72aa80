// Package message is the form of an event that is written to the WAL and to no
// table: what a row of waybill.outbox_events holds, in the same order.
//
// A message is a version byte (1) and then the columns, each as a 4-byte
// big-endian length and that many bytes, in Postgres' binary format of the
// column's type.
package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Prefix is the prefix of logical messages that carry events.
const Prefix = "waybill"

// The columns, in order.
const (
	ID            = iota // uuid
	Topic                // text
	Subject              // text
	Source               // text
	Type                 // text
	Time                 // timestamptz
	Tenant               // text
	Sequence             // bigint
	CorrelationID        // text
	CausationID          // text
	TraceParent          // text
	Fingerprint          // bigint
	Body                 // bytea
	Columns
)

const version = 1

// Begin starts a message.
func Begin(b []byte) []byte { return append(b, version) }

// Append adds a column.
func Append[T ~string | ~[]byte](b []byte, v T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

// AppendInt64 adds a column of type bigint.
func AppendInt64(b []byte, v int64) []byte {
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(v))
}

// epoch is Postgres', in microseconds of Unix time.
const epoch = 946684800 * 1e6

// AppendTime adds a column of type timestamptz.
func AppendTime(b []byte, t time.Time) []byte { return AppendInt64(b, t.UnixMicro()-epoch) }

// ErrMalformed tells of content that is no message.
var ErrMalformed = errors.New("malformed outbox message")

// Split finds a message's columns, which point into content.
func Split(content []byte, columns *[Columns][]byte) error {
	if len(content) == 0 || content[0] != version {
		return fmt.Errorf("%w: not version %d", ErrMalformed, version)
	}
	rest := content[1:]
	for i := range columns {
		if len(rest) < 4 {
			return fmt.Errorf("%w: it ends before column %d", ErrMalformed, i)
		}
		n := uint64(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		if n > uint64(len(rest)) {
			return fmt.Errorf("%w: column %d of %d bytes, %d are left", ErrMalformed, i, n, len(rest))
		}
		columns[i], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrMalformed, len(rest))
	}
	for _, c := range []struct{ column, size int }{{ID, 16}, {Time, 8}, {Sequence, 8}, {Fingerprint, 8}} {
		if len(columns[c.column]) != c.size {
			return fmt.Errorf("%w: column %d has %d bytes, want %d", ErrMalformed, c.column, len(columns[c.column]), c.size)
		}
	}
	if len(columns[Topic]) == 0 || len(columns[Subject]) == 0 {
		return fmt.Errorf("%w: no topic or no key", ErrMalformed)
	}
	return nil
}
