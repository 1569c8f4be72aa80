package relay

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/broker/producer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/message"
	"github.com/waybillhq/waybill/pg/wal"
	"github.com/waybillhq/waybill/registry"
)

// columnNames are the outbox's columns, in the order rows are handled here.
var columnNames = [message.Columns]string{
	"id", "topic", "subject", "source", "type", "time", "tenant", "sequence",
	"correlation_id", "causation_id", "trace_parent", "schema_fingerprint", "body",
}

// row is one outbox row in Postgres' binary format. Its slices point into a
// buffer that is about to be reused.
type row [message.Columns][]byte

func (r *row) id() uuid.UUID {
	var id uuid.UUID
	copy(id[:], r[message.ID])
	return id
}

func (r *row) fingerprint() int64 { return int64at(r[message.Fingerprint]) }

var errColumn = errors.New("column has an unexpected size")

// check refuses a row no record can be made of.
func (r *row) check() error {
	if len(r[message.ID]) != 16 || len(r[message.Time]) != 8 || len(r[message.Sequence]) != 8 {
		return errColumn
	}
	return nil
}

// columns is where a relation keeps the outbox's columns. Others that somebody
// added to the table are passed over.
type columns struct {
	relation *wal.Relation
	at       [message.Columns]int
	xid      int // -1 if there is none
}

func columnsOf(rel *wal.Relation) (columns, error) {
	c := columns{relation: rel, xid: slices.IndexFunc(rel.Columns, func(col wal.Column) bool { return col.Name == "xid" })}
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

func (c *columns) read(values []wal.Value, into *row) {
	for i, at := range c.at {
		into[i] = nil
		if at < len(values) {
			into[i] = values[at].Data
		}
	}
}

// writer is the transaction that wrote the row, 0 if the row does not say.
func (c *columns) writer(values []wal.Value) int64 {
	if c.xid < 0 || c.xid >= len(values) {
		return 0
	}
	return int64at(values[c.xid].Data)
}

// recorder makes records of rows, one at a time: each stands in the memory of
// the one before.
type recorder struct {
	record  producer.Record
	scratch []byte
	prefix  []byte
}

// make is the record of r: key, headers and the body behind the registry's id
// of its schema. [event.Envelope.Headers] says which headers, and a test holds
// this to it; here they are made without a string for each.
func (m *recorder) make(r *row, schemaID int) *producer.Record {
	m.prefix = registry.AppendHeader(m.prefix[:0], schemaID)
	m.record.Key, m.record.Prefix, m.record.Value = r[message.Subject], m.prefix, r[message.Body]
	m.scratch = m.scratch[:0]
	h := append(m.record.Headers[:0],
		producer.Header{Key: event.HeaderSpecVersion, Value: specVersion},
		producer.Header{Key: event.HeaderID, Value: m.keep(appendUUID, r[message.ID])},
		producer.Header{Key: event.HeaderSource, Value: r[message.Source]},
		producer.Header{Key: event.HeaderType, Value: r[message.Type]},
		producer.Header{Key: event.HeaderSubject, Value: r[message.Subject]},
		producer.Header{Key: event.HeaderTime, Value: m.keep(appendTime, r[message.Time])},
		producer.Header{Key: event.HeaderTenant, Value: r[message.Tenant]},
	)
	if int64at(r[message.Sequence]) != 0 {
		h = append(h, producer.Header{Key: event.HeaderSequence, Value: m.keep(appendInt, r[message.Sequence])})
	}
	for _, optional := range [...]struct {
		name  string
		value []byte
	}{
		{event.HeaderCorrelationID, r[message.CorrelationID]},
		{event.HeaderCausationID, r[message.CausationID]},
		{event.HeaderTraceParent, r[message.TraceParent]},
	} {
		if len(optional.value) > 0 {
			h = append(h, producer.Header{Key: optional.name, Value: optional.value})
		}
	}
	m.record.Headers = append(h, producer.Header{Key: event.HeaderContentType, Value: contentType})
	return &m.record
}

var (
	specVersion = []byte(event.SpecVersion)
	contentType = []byte(event.ContentType)
)

// keep appends a text form to the scratch memory. Growing may leave the texts
// before in the old memory, where they are as good.
func (m *recorder) keep(text func(b, v []byte) []byte, v []byte) []byte {
	n := len(m.scratch)
	m.scratch = text(m.scratch, v)
	return m.scratch[n:len(m.scratch):len(m.scratch)]
}

func appendUUID(b, v []byte) []byte {
	for i, part := range [...][]byte{v[:4], v[4:6], v[6:8], v[8:10], v[10:16]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

func appendTime(b, v []byte) []byte {
	t, _ := wal.Timestamp(v)
	return t.AppendFormat(b, time.RFC3339Nano)
}

func appendInt(b, v []byte) []byte { return strconv.AppendInt(b, int64at(v), 10) }

func int64at(b []byte) int64 {
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}
