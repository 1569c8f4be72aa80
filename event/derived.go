package event

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// DerivedID is the id of the nth event that by makes of an event: always the
// same one, so that whoever gets it twice recognises it. It carries the moment
// of the id it comes from, which keeps it in the partition of that day.
func DerivedID(from uuid.UUID, by string, n int) uuid.UUID {
	seed := append(from[:len(from):len(from)], by...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(seed, uint64(n)))
	out := IDFloor(IDTime(from))
	copy(out[6:], sum[:10])
	out[6] = out[6]&0x0f | 0x70
	out[8] = out[8]&0x3f | 0x80
	return out
}

// Derived makes the envelope of the nth event that by makes of from: of the same
// moment and tenant, caused by it. Made again it is the same.
func (c *Contract) Derived(ctx context.Context, from *Envelope, by string, n int, d Data) Envelope {
	return c.envelope(WithCause(ctx, from), DerivedID(from.ID, by, n), d, from.Time)
}
