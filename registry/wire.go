package registry

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Confluent's wire format: a zero byte, the schema's id as four bytes, most
// significant first, then the Avro body.
const (
	magic      = 0
	headerSize = 5
)

// AppendHeader appends the header that names schema id to dst. The id is one a
// registry gave, so it is positive and fits 31 bits.
func AppendHeader(dst []byte, id int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, magic), uint32(id))
}

// SplitHeader takes the schema id off value and returns the Avro body behind
// it, which shares value's memory. The error is [ErrNotWireFormat].
func SplitHeader(value []byte) (id int, body []byte, err error) {
	if len(value) < headerSize {
		return 0, nil, fmt.Errorf("%w: %d bytes are too short for a header", ErrNotWireFormat, len(value))
	}
	if value[0] != magic {
		return 0, nil, fmt.Errorf("%w: begins with 0x%02x, not 0x00", ErrNotWireFormat, value[0])
	}
	n := binary.BigEndian.Uint32(value[1:headerSize])
	if n > math.MaxInt32 {
		return 0, nil, fmt.Errorf("%w: no registry gives the schema id %d", ErrNotWireFormat, n)
	}
	return int(n), value[headerSize:], nil
}
