package event

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// NewID returns a new UUIDv7. Ids made by one process ascend.
//
// It panics when the operating system has no randomness to give: an event
// without a unique id must not exist.
func NewID() uuid.UUID {
	return uuid.Must(uuid.NewV7())
}

// IDTime is the moment written in a UUIDv7, to the millisecond, UTC.
func IDTime(id uuid.UUID) time.Time {
	ms := binary.BigEndian.Uint64(id[:8]) >> 16
	return time.UnixMilli(int64(ms)).UTC()
}

// IDFloor is the smallest id of the millisecond t lies in: a bound for ranges
// over ids, as partitions by day have.
func IDFloor(t time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16)
	return id
}

// ForeignID gives an id to an event that others published without a UUIDv7:
// always the same one for the same source, id and time, so that a second
// delivery is recognised. The time keeps it in the partition of its day.
func ForeignID(source, id string, t time.Time) uuid.UUID {
	sum := sha256.Sum256([]byte(source + "\x00" + id))
	out := IDFloor(t)
	copy(out[6:], sum[:10])
	out[6] = out[6]&0x0f | 0x80 // version 8: vendor specific
	out[8] = out[8]&0x3f | 0x80
	return out
}
