package wal

import (
	"bytes"
	"encoding/binary"
	"time"
)

// reader takes values off a message. Past its end it fails once and for all
// and returns zeros.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) bytes(n int) []byte {
	if r.failed || n < 0 || n > len(r.b) {
		r.failed = true
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) skip(n int) { r.bytes(n) }

func (r *reader) byte() byte {
	if v := r.bytes(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if v := r.bytes(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if v := r.bytes(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if v := r.bytes(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// text reads a NUL-terminated string without copying it.
func (r *reader) text() []byte {
	i := bytes.IndexByte(r.b, 0)
	if r.failed || i < 0 {
		r.failed = true
		return nil
	}
	v := r.b[:i:i]
	r.b = r.b[i+1:]
	return v
}

func (r *reader) string() string { return string(r.text()) }

// tuple reads a row over those of into.
func (r *reader) tuple(into []Value) []Value {
	n := int(r.uint16())
	row := into[:0]
	for range n {
		v := Value{Kind: r.byte()}
		switch v.Kind {
		case Null, Unchanged:
		case Text, Binary:
			v.Data = r.bytes(int(r.uint32()))
		default:
			r.failed = true
		}
		if r.failed {
			break
		}
		row = append(row, v)
	}
	return row
}

// Timestamp reads a timestamptz value as the binary protocol carries it.
func Timestamp(v []byte) (time.Time, bool) {
	if len(v) != 8 {
		return time.Time{}, false
	}
	return timestamp(binary.BigEndian.Uint64(v)), true
}

// timestamp converts Postgres' microseconds since 2000.
func timestamp(us uint64) time.Time {
	const epoch = 946684800 // 2000-01-01 in Unix seconds
	n := int64(us)
	return time.Unix(epoch+n/1e6, n%1e6*1e3).UTC()
}
