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

// idAt is an id of a moment to come. Those that one process makes for the same
// millisecond ascend if it makes them within twelve days: what is random in
// other ids is here, for the most part, the low bits of the moment of making. 32
// bits stay random.
func idAt(t time.Time) uuid.UUID {
	made := NewID()
	const sub = 12 // bits below the millisecond, which NewID counts on
	n := binary.BigEndian.Uint64(made[:8])
	n = n>>16<<sub | n&(1<<sub-1)
	id := IDFloor(t)
	id[6], id[7] = 0x70|byte(n>>38&0x0f), byte(n>>30)
	id[8] = 0x80 | byte(n>>24&0x3f)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	copy(id[12:], made[12:])
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
