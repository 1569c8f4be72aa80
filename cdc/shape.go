package cdc

import (
	"context"
	"errors"
	"fmt"

	"github.com/waybillhq/waybill/pg/wal"
	"github.com/waybillhq/waybill/registry"
)

// column is a column that is published.
type column struct {
	at    int // in the rows as they come
	name  string
	field string // in Avro
	columnType
}

// shape is how the rows of a table, as they come at some point of the stream or
// in a snapshot, become events: which of their columns, under which schema. A
// column that is not on the allow-list is in no shape.
type shape struct {
	registered
	columns []column
	keys    []int // of the primary key in its order, as column.at
	tenant  int   // as column.at, -1 if there is none
}

// columnsOf chooses those of cols that t publishes.
func columnsOf(t Table, cols []wal.Column, known types) []column {
	var out []column
	taken := names{}
	for i, c := range cols {
		if t.allows(c.Name) {
			out = append(out, column{i, c.Name, taken.of(c.Name), known.of(c.Type)})
		}
	}
	return out
}

// change is what happened to a row. Rows are as they came, with a value for
// each of their columns.
type change struct {
	op            byte
	before        []wal.Value // nil if it is not known
	beforeKeyOnly bool
	after         []wal.Value // nil once it is deleted
}

// Operations.
const (
	opCreate = 'c'
	opUpdate = 'u'
	opDelete = 'd'
	opRead   = 'r'
)

// place is where in the WAL a change stands.
type place struct {
	tx       *tx
	timeline int64
	ordinal  int64
}

// leaveOut are columns whose values do not fit into the record, by their place
// in shape.columns.
type leaveOut struct{ before, after map[int]bool }

// append adds the value of c's record: the registry's id and the Avro body. The
// order is that of schemaText.
func (s *shape) append(b []byte, c change, p place, out leaveOut) []byte {
	var omitted []string
	b = registry.AppendHeader(b, s.id)
	b = append(appendLong(b, 1), c.op)
	b, omitted = s.appendRow(b, c.before, out.before, "before.", omitted)
	b, omitted = s.appendRow(b, c.after, out.after, "after.", omitted)
	b = appendBool(b, c.beforeKeyOnly)
	b = appendStrings(b, s.unchanged(c.after))
	b = appendStrings(b, omitted)
	b = appendLong(b, int64(p.tx.xid))
	b = appendLong(b, p.timeline)
	b = appendLong(b, int64(p.tx.lsn))
	b = appendLong(b, p.ordinal)
	return appendLong(b, p.tx.time.UnixMicro())
}

// appendRow adds the union of null and the row.
func (s *shape) appendRow(b []byte, row []wal.Value, out map[int]bool, side string, omitted []string) ([]byte, []string) {
	if row == nil {
		return appendLong(b, branchNull), omitted
	}
	b = appendLong(b, branchValue)
	for i := range s.columns {
		c := &s.columns[i]
		v := row[c.at]
		if v.Kind != wal.Text {
			b = appendLong(b, branchNull)
			continue
		}
		ok := !out[i]
		if ok {
			b, ok = c.append(b, v.Data)
		}
		if !ok {
			b = appendLong(b, branchNull)
			omitted = append(omitted, side+c.field)
		}
	}
	return b, omitted
}

// unchanged names the fields whose values the server did not repeat.
func (s *shape) unchanged(row []wal.Value) (fields []string) {
	for _, c := range s.columns {
		if row != nil && row[c.at].Kind == wal.Unchanged {
			fields = append(fields, c.field)
		}
	}
	return fields
}

// fill puts what the update did not touch, and what the server therefore did
// not send, from the old row into the new one.
func fill(old wal.Old, row []wal.Value, rel *wal.Relation) {
	for i := range row {
		if row[i].Kind != wal.Unchanged {
			continue
		}
		known := old.Kind == wal.OldRow || old.Kind == wal.OldKey && rel.Columns[i].Key
		if known && old.Row[i].Kind == wal.Text {
			row[i] = old.Row[i]
		}
	}
}

// errKeyless is a table that has not the primary key it is to have at this
// point of the stream.
var errKeyless = errors.New("its primary key was another one")

// shape makes the shape of rows with such columns.
func (s *schemas) shape(ctx context.Context, db querier, w *watched, cols []wal.Column) (*shape, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oids := make([]uint32, len(cols))
	at := map[string]int{}
	for i, c := range cols {
		oids[i], at[c.Name] = c.Type, i
	}
	sh := &shape{tenant: -1}
	for _, key := range w.facts.keys {
		i, ok := at[key]
		if !ok {
			return nil, fmt.Errorf("%w: there was no column %q", errKeyless, key)
		}
		sh.keys = append(sh.keys, i)
	}
	if i, ok := at[w.TenantColumn]; ok {
		sh.tenant = i
	}
	if err := s.types.lookUp(ctx, db, oids); err != nil {
		return nil, err
	}
	sh.columns = columnsOf(w.Table, cols, s.types)
	var err error
	sh.registered, err = s.register(ctx, w.Table, sh.columns)
	return sh, err
}
