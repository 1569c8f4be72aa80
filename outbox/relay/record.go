package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/wal"
	"github.com/waybillhq/waybill/registry"
)

// The outbox's columns, in the order rows are handled here.
const (
	colID = iota
	colTopic
	colSubject
	colSource
	colType
	colTime
	colTenant
	colSequence
	colCorrelationID
	colCausationID
	colTraceParent
	colFingerprint
	colBody
	columnCount
)

var columnNames = [columnCount]string{
	"id", "topic", "subject", "source", "type", "time", "tenant", "sequence",
	"correlation_id", "causation_id", "trace_parent", "schema_fingerprint", "body",
}

// row is one outbox row in Postgres' binary format. Its slices point into a
// buffer that is about to be reused.
type row [columnCount][]byte

func (r *row) id() uuid.UUID {
	id, _ := uuid.FromBytes(r[colID])
	return id
}

func (r *row) fingerprint() int64 { return int64at(r[colFingerprint]) }

// columns is where a relation keeps the outbox's columns. Others that somebody
// added to the table are passed over.
type columns struct {
	relation *wal.Relation
	at       [columnCount]int
	values   row
}

func columnsOf(rel *wal.Relation) (columns, error) {
	c := columns{relation: rel}
	for i, name := range columnNames {
		c.at[i] = -1
		for j, col := range rel.Columns {
			if col.Name == name {
				c.at[i] = j
			}
		}
		if c.at[i] < 0 {
			return c, fmt.Errorf("table %s.%s has no column %q: the outbox's migrations have not run, or somebody changed it",
				rel.Namespace, rel.Name, name)
		}
	}
	return c, nil
}

func (c *columns) row(values []wal.Value) row {
	for i, at := range c.at {
		c.values[i] = nil
		if at < len(values) {
			c.values[i] = values[at].Data
		}
	}
	return c.values
}

// tag rides in a record's context to its acknowledgement: what kgo hands back
// is the record alone. As a context it never ends, and it says so without
// reading its fields, since the client may still look at the context of a
// record that is already being reused.
type tag struct {
	record *record
	id     uuid.UUID
	commit *commit
	size   int
}

func (*tag) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*tag) Done() <-chan struct{}       { return nil }
func (*tag) Err() error                  { return nil }
func (*tag) Value(any) any               { return nil }

var _ context.Context = (*tag)(nil)

// record is a broker record with the memory behind its fields, reused once the
// broker has answered.
type record struct {
	kgo.Record
	tag     tag
	buf     []byte // behind key, value and header values
	headers [12]kgo.RecordHeader
}

var records = sync.Pool{New: func() any { return new(record) }}

// maxReusedBuffer keeps a few large events from making the buffers of many
// small ones large for ever.
const maxReusedBuffer = 16 << 10

func (t *tag) recycle() {
	r := t.record
	if cap(r.buf) > maxReusedBuffer {
		r.buf = nil
	}
	r.Record, r.tag = kgo.Record{}, tag{}
	records.Put(r)
}

var errColumn = errors.New("column has an unexpected size")

// newRecord makes the record of a row: key, headers and the body behind the
// registry's id of its schema.
func newRecord(r row, schemaID int) (*record, error) {
	if len(r[colID]) != 16 || len(r[colTime]) != 8 || len(r[colSequence]) != 8 {
		return nil, errColumn
	}
	rec := records.Get().(*record)
	b := registry.AppendHeader(slices.Grow(rec.buf[:0], sizeOf(&r)), schemaID)
	b = append(b, r[colBody]...)
	value := len(b)
	b = append(b, r[colSubject]...)
	key := len(b)

	env := envelope(&r)
	n := 0
	env.Headers(func(name, v string) {
		b = append(b, v...)
		// The slice is cut below: b may still move.
		rec.headers[n] = kgo.RecordHeader{Key: name, Value: b[len(b)-len(v):]}
		n++
	})
	end := len(b)
	for i := n - 1; i >= 0; i-- {
		size := len(rec.headers[i].Value)
		rec.headers[i].Value = b[end-size : end : end]
		end -= size
	}
	rec.buf = b
	rec.tag = tag{record: rec, id: env.ID, size: len(b)}
	rec.Record = kgo.Record{
		Topic: string(r[colTopic]), Key: b[value:key:key], Value: b[:value:value],
		Headers: rec.headers[:n:n], Context: &rec.tag,
	}
	return rec, nil
}

// sizeOf is about how many bytes r's record takes. The subject is in it twice;
// numbers, times and ids are longer as text.
func sizeOf(r *row) int {
	n := 256 + len(r[colSubject])
	for _, v := range r {
		n += len(v)
	}
	return n
}

func envelope(r *row) event.Envelope {
	at, _ := wal.Timestamp(r[colTime])
	return event.Envelope{
		ID: r.id(), Source: string(r[colSource]), Type: string(r[colType]),
		Subject: string(r[colSubject]), Time: at, Tenant: string(r[colTenant]),
		Sequence: int64at(r[colSequence]), CorrelationID: string(r[colCorrelationID]),
		CausationID: string(r[colCausationID]), TraceParent: string(r[colTraceParent]),
	}
}

func int64at(b []byte) int64 {
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}
