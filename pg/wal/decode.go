package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Handler receives what a slot's transactions did, in commit order: Begin,
// the rows, Commit. Slices it is given are valid until it returns.
type Handler interface {
	Begin(t Begin) error
	Insert(rel *Relation, row []Value) error
	Commit(end LSN) error
}

// Begin opens a transaction.
type Begin struct {
	XID        uint32
	CommitLSN  LSN
	CommitTime time.Time // when it committed, by the server's clock
}

// Relation is a table as it stands at this point of the stream. A new one with
// the same ID replaces it after a change of the table.
type Relation struct {
	ID        uint32
	Namespace string
	Name      string
	Columns   []Column
}

// Column is a column of a relation.
type Column struct {
	Name string
	Type uint32 // OID
	Key  bool   // part of the replica identity
}

// Kinds of a [Value].
const (
	Null      = 'n'
	Unchanged = 'u' // a TOASTed value the update did not touch; not sent
	Text      = 't'
	Binary    = 'b'
)

// Value is one column of a row. Data points into the read buffer.
type Value struct {
	Kind byte
	Data []byte
}

// Decoder turns pgoutput messages (protocol version 1) into calls of a
// Handler. It keeps the relations and one row's values, and nothing per row.
type Decoder struct {
	handler   Handler
	relations map[uint32]*Relation
	row       []Value
	open      bool // between Begin and Commit
}

// NewDecoder makes a decoder for one stream: relations are announced anew on
// each connection.
func NewDecoder(h Handler) *Decoder {
	return &Decoder{handler: h, relations: map[uint32]*Relation{}}
}

// ErrMalformed tells of a message that breaks the protocol, or comes when it
// must not.
var ErrMalformed = errors.New("malformed pgoutput message")

// Decode handles one message. Kinds the handler has no method for are passed
// over.
func (d *Decoder) Decode(msg []byte) error {
	if len(msg) == 0 {
		return fmt.Errorf("%w: empty", ErrMalformed)
	}
	r := reader{b: msg[1:]}
	switch msg[0] {
	case 'B':
		return d.begin(&r)
	case 'C':
		return d.commit(&r)
	case 'R':
		return d.relation(&r)
	case 'I':
		return d.insert(&r)
	}
	return nil
}

func (d *Decoder) begin(r *reader) error {
	t := Begin{CommitLSN: LSN(r.uint64()), CommitTime: timestamp(r.uint64()), XID: r.uint32()}
	if r.failed || d.open {
		return fmt.Errorf("%w: begin", ErrMalformed)
	}
	d.open = true
	return d.handler.Begin(t)
}

func (d *Decoder) commit(r *reader) error {
	r.skip(1 + 8) // flags, LSN of the commit record
	end := LSN(r.uint64())
	if r.failed || !d.open {
		return fmt.Errorf("%w: commit", ErrMalformed)
	}
	d.open = false
	return d.handler.Commit(end)
}

func (d *Decoder) relation(r *reader) error {
	rel := &Relation{ID: r.uint32(), Namespace: r.string(), Name: r.string()}
	r.skip(1) // replica identity
	n := int(r.uint16())
	for range n {
		if r.failed {
			break
		}
		key := r.byte()&1 == 1
		c := Column{Key: key, Name: r.string(), Type: r.uint32()}
		r.skip(4) // type modifier
		rel.Columns = append(rel.Columns, c)
	}
	if r.failed {
		return fmt.Errorf("%w: relation", ErrMalformed)
	}
	d.relations[rel.ID] = rel
	return nil
}

func (d *Decoder) insert(r *reader) error {
	id := r.uint32()
	if !d.open {
		return fmt.Errorf("%w: insert outside of a transaction", ErrMalformed)
	}
	rel := d.relations[id]
	if rel == nil {
		return fmt.Errorf("%w: insert into relation %d, which was not announced", ErrMalformed, id)
	}
	if r.byte() != 'N' || !d.tuple(r) {
		return fmt.Errorf("%w: insert into %s.%s", ErrMalformed, rel.Namespace, rel.Name)
	}
	return d.handler.Insert(rel, d.row)
}

// tuple reads a row into d.row.
func (d *Decoder) tuple(r *reader) bool {
	n := int(r.uint16())
	d.row = d.row[:0]
	for range n {
		v := Value{Kind: r.byte()}
		switch v.Kind {
		case Null, Unchanged:
		case Text, Binary:
			v.Data = r.bytes(int(r.uint32()))
		default:
			return false
		}
		if r.failed {
			return false
		}
		d.row = append(d.row, v)
	}
	return !r.failed
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

// string reads a NUL-terminated string.
func (r *reader) string() string {
	for i, c := range r.b {
		if c == 0 {
			s := string(r.b[:i])
			r.b = r.b[i+1:]
			return s
		}
	}
	r.failed = true
	return ""
}
