package producer

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"time"
)

// Record is what is appended. Nothing of it is kept.
type Record struct {
	Key     []byte
	Prefix  []byte // of the value
	Value   []byte
	Headers []Header
}

// Header is a record's header.
type Header struct {
	Key   string
	Value []byte
}

// Batch is some records of one partition that the broker has taken together.
type Batch[T any] struct {
	Partition *Partition[T]
	Base      int64 // offset of the first; the others follow. -1: the broker did not say
	Tags      []T

	buf     []byte // the batch as it is sent, from its header on
	ends    []int  // where each record ends in buf
	id      identity
	first   int32 // sequence number of the first record
	sealed  bool  // no more records
	sent    bool  // it has its identity and sequence for good
	unsure  bool  // the broker may have taken it under them, whatever it says next
	refused error // what it is refused for without being sent
}

// The header of a version 2 batch, and where its fields are.
const (
	headerSize     = 61
	atLength       = 8
	atLeaderEpoch  = 12
	atMagic        = 16
	atCRC          = 17
	atAttributes   = 21
	atLastDelta    = 23
	atFirstTime    = 27
	atMaxTime      = 35
	atProducer     = 43
	atEpoch        = 51
	atSequence     = 53
	atCount        = 57
	transactional  = 1 << 4
	maxRecordExtra = 64 // varints of a record and of one header, at most
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fits tells whether the record may join.
func (b *Batch[T]) fits(size, limit int) bool {
	return !b.sealed && len(b.buf)+size <= limit
}

// add appends r, whose body takes size bytes.
func (b *Batch[T]) add(r *Record, delta, size int, tag T) {
	if len(b.buf) == 0 {
		b.buf = append(b.buf, make([]byte, headerSize)...)
	}
	buf := appendVarint(b.buf, size)
	buf = append(buf, 0)       // attributes
	buf = appendVarint(buf, 0) // time, from the batch's
	buf = appendVarint(buf, delta)
	buf = appendVarint(buf, len(r.Key))
	buf = append(buf, r.Key...)
	buf = appendVarint(buf, len(r.Prefix)+len(r.Value))
	buf = append(buf, r.Prefix...)
	buf = append(buf, r.Value...)
	buf = appendVarint(buf, len(r.Headers))
	for i := range r.Headers {
		h := &r.Headers[i]
		buf = appendVarint(buf, len(h.Key))
		buf = append(buf, h.Key...)
		buf = appendVarint(buf, len(h.Value))
		buf = append(buf, h.Value...)
	}
	b.buf = buf
	b.ends = append(b.ends, len(buf))
	b.Tags = append(b.Tags, tag)
}

// bodySize is how long r is at place delta of a batch, without its length.
func bodySize(r *Record, delta int) int {
	value := len(r.Prefix) + len(r.Value)
	n := 1 + 1 + varintSize(delta) +
		varintSize(len(r.Key)) + len(r.Key) + varintSize(value) + value + varintSize(len(r.Headers))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += varintSize(len(h.Key)) + len(h.Key) + varintSize(len(h.Value)) + len(h.Value)
	}
	return n
}

// seal writes the header. It is written again with other numbers, and then has
// another time: a broker that bounds how old records may be would never take
// what waited for too long.
func (b *Batch[T]) seal(inTransaction bool) {
	h := b.buf[:headerSize]
	clear(h)
	binary.BigEndian.PutUint32(h[atLength:], uint32(len(b.buf)-atLeaderEpoch))
	binary.BigEndian.PutUint32(h[atLeaderEpoch:], ^uint32(0))
	h[atMagic] = 2
	if inTransaction {
		binary.BigEndian.PutUint16(h[atAttributes:], transactional)
	}
	n := len(b.Tags)
	binary.BigEndian.PutUint32(h[atLastDelta:], uint32(n-1))
	at := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint64(h[atFirstTime:], at)
	binary.BigEndian.PutUint64(h[atMaxTime:], at)
	binary.BigEndian.PutUint64(h[atProducer:], uint64(b.id.producer))
	binary.BigEndian.PutUint16(h[atEpoch:], uint16(b.id.epoch))
	binary.BigEndian.PutUint32(h[atSequence:], uint32(b.first))
	binary.BigEndian.PutUint32(h[atCount:], uint32(n))
	binary.BigEndian.PutUint32(h[atCRC:], crc32.Checksum(b.buf[atAttributes:], castagnoli))
}

// split moves the second half of b's records to next. The records' places in
// their batch are part of them, so those that move are written anew.
func (b *Batch[T]) split(next *Batch[T]) {
	half := len(b.Tags) / 2
	next.buf = append(next.buf, make([]byte, headerSize)...)
	start := b.ends[half-1]
	cut := start
	for i := half; i < len(b.Tags); i++ {
		next.move(b.buf[start:b.ends[i]], i-half, b.Tags[i])
		start = b.ends[i]
	}
	next.sealed = true
	clear(b.Tags[half:])
	b.buf, b.ends, b.Tags = b.buf[:cut], b.ends[:half], b.Tags[:half]
}

// move appends a record as it stands in another batch, at place delta here.
func (b *Batch[T]) move(rec []byte, delta int, tag T) {
	_, n := binary.Varint(rec) // its length
	rest := rec[n+2:]          // behind attributes and time, a byte each
	_, n = binary.Varint(rest) // its place
	rest = rest[n:]
	b.buf = appendVarint(b.buf, 2+varintSize(delta)+len(rest))
	b.buf = append(b.buf, 0, 0)
	b.buf = appendVarint(b.buf, delta)
	b.buf = append(b.buf, rest...)
	b.ends = append(b.ends, len(b.buf))
	b.Tags = append(b.Tags, tag)
}

// appendVarint appends v, zigzag-coded.
func appendVarint(b []byte, v int) []byte { return binary.AppendVarint(b, int64(v)) }

func varintSize(v int) int {
	return (bits.Len64(uint64(v)<<1|1) + 6) / 7 // v is never negative
}
