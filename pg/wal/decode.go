package wal

import (
	"errors"
	"fmt"
)

// Decoder turns pgoutput messages (protocol version 1) into calls of a
// Handler. It keeps the relations and one change's rows, and nothing per row.
type Decoder struct {
	handler   Handler
	updates   UpdateHandler // the handler too, or nil
	deletes   DeleteHandler
	truncates TruncateHandler
	messages  MessageHandler
	relations map[uint32]*Relation
	row, old  []Value
	open      bool // between Begin and Commit
}

// NewDecoder makes a decoder for one stream: relations are announced anew on
// each connection.
func NewDecoder(h Handler) *Decoder {
	d := &Decoder{handler: h, relations: map[uint32]*Relation{}}
	d.updates, _ = h.(UpdateHandler)
	d.deletes, _ = h.(DeleteHandler)
	d.truncates, _ = h.(TruncateHandler)
	d.messages, _ = h.(MessageHandler)
	return d
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
	case 'U':
		return d.update(&r)
	case 'D':
		return d.delete(&r)
	case 'T':
		return d.truncate(&r)
	case 'M':
		return d.message(&r)
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
	rel := &Relation{ID: r.uint32(), Namespace: r.string(), Name: r.string(), Identity: Identity(r.byte())}
	if rel.Namespace == "" {
		rel.Namespace = "pg_catalog" // so the protocol spells it
	}
	n := int(r.uint16())
	for range n {
		if r.failed {
			break
		}
		key := r.byte()&1 == 1
		rel.Columns = append(rel.Columns, Column{Key: key, Name: r.string(), Type: r.uint32(), Modifier: int32(r.uint32())})
	}
	if r.failed {
		return fmt.Errorf("%w: relation", ErrMalformed)
	}
	d.relations[rel.ID] = rel
	return nil
}

// target reads which relation a change is of.
func (d *Decoder) target(r *reader, change string) (*Relation, error) {
	id := r.uint32()
	if !d.open {
		return nil, fmt.Errorf("%w: %s outside of a transaction", ErrMalformed, change)
	}
	rel := d.relations[id]
	if rel == nil {
		return nil, fmt.Errorf("%w: %s of relation %d, which was not announced", ErrMalformed, change, id)
	}
	return rel, nil
}

func malformed(change string, rel *Relation) error {
	return fmt.Errorf("%w: %s of %s.%s", ErrMalformed, change, rel.Namespace, rel.Name)
}

func (d *Decoder) insert(r *reader) error {
	rel, err := d.target(r, "insert")
	if err != nil {
		return err
	}
	kind := r.byte()
	d.row = r.tuple(d.row)
	if r.failed || kind != 'N' || !rel.fits(d.row) {
		return malformed("insert", rel)
	}
	return d.handler.Insert(rel, d.row)
}

func (d *Decoder) update(r *reader) error {
	if d.updates == nil {
		return nil
	}
	rel, err := d.target(r, "update")
	if err != nil {
		return err
	}
	var old Old
	kind := r.byte()
	if isOld(kind) {
		d.old = r.tuple(d.old)
		old = Old{OldKind(kind), d.old}
		if !rel.fits(d.old) {
			return malformed("update", rel)
		}
		kind = r.byte()
	}
	d.row = r.tuple(d.row)
	if r.failed || kind != 'N' || !rel.fits(d.row) {
		return malformed("update", rel)
	}
	return d.updates.Update(rel, old, d.row)
}

func (d *Decoder) delete(r *reader) error {
	if d.deletes == nil {
		return nil
	}
	rel, err := d.target(r, "delete")
	if err != nil {
		return err
	}
	kind := r.byte()
	d.old = r.tuple(d.old)
	if r.failed || !isOld(kind) || !rel.fits(d.old) {
		return malformed("delete", rel)
	}
	return d.deletes.Delete(rel, Old{OldKind(kind), d.old})
}

// fits tells whether row has as many values as the relation has columns, which
// handlers rely on.
func (rel *Relation) fits(row []Value) bool { return len(row) == len(rel.Columns) }

func isOld(kind byte) bool { return OldKind(kind) == OldKey || OldKind(kind) == OldRow }

func (d *Decoder) truncate(r *reader) error {
	if d.truncates == nil {
		return nil
	}
	n := r.uint32()
	r.skip(1) // options: CASCADE, RESTART IDENTITY
	var rels []*Relation
	for range n {
		if r.failed {
			break
		}
		rel, err := d.target(r, "truncate")
		if err != nil {
			return err
		}
		rels = append(rels, rel)
	}
	if r.failed || !d.open {
		return fmt.Errorf("%w: truncate", ErrMalformed)
	}
	return d.truncates.Truncate(rels)
}

func (d *Decoder) message(r *reader) error {
	if d.messages == nil {
		return nil
	}
	m := Message{Transactional: r.byte()&1 == 1, LSN: LSN(r.uint64()), Prefix: r.text()}
	m.Content = r.bytes(int(r.uint32()))
	if r.failed || m.Transactional && !d.open {
		return fmt.Errorf("%w: logical message", ErrMalformed)
	}
	return d.messages.Message(m)
}
