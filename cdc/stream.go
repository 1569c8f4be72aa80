package cdc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/waybillhq/waybill/pg/wal"
)

// binding is what the reader does with the rows of a relation.
type binding struct {
	rel   *wal.Relation
	among *map[string]*watched
	table *watched
	shape *shape // nil: its changes are passed over
	fault string // why, if they should not be
}

// bind gives the binding of rel, making it when the relation was announced anew
// or the tables have changed: this is where a change of a table is seen.
func (s *session) bind(rel *wal.Relation) (*binding, error) {
	among := s.watched.Load()
	b := s.bound[rel.ID]
	if b != nil && b.rel == rel && b.among == among {
		return b, nil
	}
	if b != nil && b.rel != rel {
		s.look()
	}
	b = &binding{rel: rel, among: among, table: (*among)[rel.Namespace+"."+rel.Name]}
	if b.table != nil && !b.table.suspended {
		sh, err := s.schemas.shape(s.ctx, s.db, b.table, rel.Columns)
		switch {
		case errors.Is(err, errKeyless):
			b.fault = err.Error()
		case err != nil:
			return nil, err
		}
		b.shape = sh
	}
	s.bound[rel.ID] = b
	return b, nil
}

// change binds rel for one more change of the open transaction. It is nil for
// changes to be passed over.
func (s *session) change(rel *wal.Relation) (*binding, error) {
	s.tx.changes++
	b, err := s.bind(rel)
	if err != nil || b.shape != nil {
		return b, err
	}
	if b.fault != "" {
		s.miss(b, b.fault)
	}
	return nil, nil
}

// miss notes that a change cannot be told as such. A snapshot that begins after
// it tells its result; it is asked for before the transaction is confirmed.
func (s *session) miss(b *binding, why string) { s.missed[b.table.String()] = why }

// Begin opens a transaction.
func (s *session) Begin(t wal.Begin) error {
	s.tx = s.flight.begin(t)
	return nil
}

// Insert tells of a new row.
func (s *session) Insert(rel *wal.Relation, row []wal.Value) error {
	b, err := s.change(rel)
	if b == nil || err != nil {
		return err
	}
	return s.created(b, row, 0)
}

func (s *session) created(b *binding, row []wal.Value, step int64) error {
	key, ok := b.shape.appendKey(nil, row)
	if !ok {
		s.miss(b, unknownKey)
		return nil
	}
	return s.emit(b, key, change{op: opCreate, after: row}, step)
}

const unknownKey = "a change came without its primary key"

// Update tells of a row that changed. One whose key changed is another row to
// whoever reads by key: the old one is deleted and the new one created.
func (s *session) Update(rel *wal.Relation, old wal.Old, row []wal.Value) error {
	b, err := s.change(rel)
	if b == nil || err != nil {
		return err
	}
	fill(old, row, rel)
	key, ok := b.shape.appendKey(nil, row)
	if !ok {
		s.miss(b, unknownKey)
		return nil
	}
	if old.Kind != wal.OldNone {
		if oldKey, ok := b.shape.appendKey(nil, old.Row); ok && !bytes.Equal(oldKey, key) {
			if len(b.shape.unchanged(row)) > 0 {
				// A reader has them under the old key.
				s.miss(b, "a key changed and Postgres did not repeat the row's large values (REPLICA IDENTITY FULL has it do so)")
			}
			if err := s.deleted(b, oldKey, old); err != nil {
				return err
			}
			return s.created(b, row, 2)
		}
	}
	c := change{op: opUpdate, after: row}
	if old.Kind == wal.OldRow {
		c.before = old.Row
	}
	return s.emit(b, key, c, 0)
}

// Delete tells of a row that is gone.
func (s *session) Delete(rel *wal.Relation, old wal.Old) error {
	b, err := s.change(rel)
	if b == nil || err != nil {
		return err
	}
	key, ok := b.shape.appendKey(nil, old.Row)
	if !ok {
		s.miss(b, unknownKey)
		return nil
	}
	return s.deleted(b, key, old)
}

// deleted publishes the event and then a tombstone, which lets a topic that
// keeps the last record of each key forget the key.
func (s *session) deleted(b *binding, key []byte, old wal.Old) error {
	c := change{op: opDelete, before: old.Row, beforeKeyOnly: old.Kind == wal.OldKey}
	if err := s.emit(b, key, c, 0); err != nil {
		return err
	}
	return s.publish(b.table, b.shape, key, change{op: opTombstone, before: old.Row}, 1)
}

func (s *session) emit(b *binding, key []byte, c change, step int64) error {
	b.table.tracker.touch(key, s.tx.xid)
	return s.publish(b.table, b.shape, key, c, step)
}

// Truncate has the tables read again: which keys there were, only the topic
// knows.
func (s *session) Truncate(rels []*wal.Relation) error {
	for _, rel := range rels {
		b, err := s.change(rel)
		if err != nil {
			return err
		}
		if b != nil {
			b.table.tracker.truncate(s.tx.xid)
			s.miss(b, "it was truncated")
		}
	}
	return nil
}

// Commit closes the transaction.
func (s *session) Commit(end wal.LSN) error {
	for name, why := range s.missed {
		if err := s.readAgain(s.ctx, name, why); err != nil {
			return err
		}
		delete(s.missed, name)
	}
	s.flight.commit(s.tx, end, s.then)
	s.tx, s.then = nil, after{}
	return nil
}

// messagePrefix is that of our logical messages. Anybody may emit one.
const messagePrefix = "waybill.cdc"

// messageWake has the snapshotter look what is due.
const messageWake = "wake"

// Message takes a watermark: the place in the stream where what the snapshotter
// read is to be told.
func (s *session) Message(m wal.Message) error {
	if string(m.Prefix) != messagePrefix {
		return nil
	}
	if string(m.Content) == messageWake {
		s.wake()
		return nil
	}
	if !m.Transactional {
		return nil
	}
	c, ok := s.offered.LoadAndDelete(string(m.Content))
	if !ok {
		return nil // of a process that was here before, or forged
	}
	return s.place(c.(*chunk))
}

// place publishes the rows of c that the stream has not overtaken.
func (s *session) place(c *chunk) error {
	if c.table == nil {
		s.then.all = append(s.then.all, func() { close(c.placed) })
		return nil
	}
	if (*s.watched.Load())[c.table.String()] != c.table {
		c.void = true
	} else {
		for i := range c.items {
			if err := s.placeItem(c, &c.items[i]); err != nil {
				return err
			}
		}
	}
	c.table.tracker.forget(c.at)
	s.then.own = append(s.then.own, func() { close(c.placed) })
	return nil
}

func (s *session) placeItem(c *chunk, it *item) error {
	s.tx.changes++
	if c.table.tracker.superseded(it.key, c.at) {
		return nil
	}
	if err := s.publish(c.table, c.shape, it.key, it.change, 0); err != nil {
		return fmt.Errorf("snapshot of %s: %w", c.table, err)
	}
	if it.change.op != opDelete {
		return nil
	}
	return s.publish(c.table, c.shape, it.key, change{op: opTombstone, before: it.change.before}, 1)
}
