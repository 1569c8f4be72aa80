package archive

import (
	"time"

	"github.com/google/uuid"
	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/event"
)

// schemaText is the record of format 1. Ids are text and times are
// microseconds, which every Avro tool shows as what they are.
const schemaText = `{"type":"record","name":"Event","namespace":"waybill.outbox","doc":"An event that left the outbox.","fields":[
 {"name":"id","type":{"type":"string","logicalType":"uuid"}},
 {"name":"topic","type":"string"},
 {"name":"subject","type":"string","doc":"aggregate id; the record's key"},
 {"name":"source","type":"string"},
 {"name":"type","type":"string"},
 {"name":"time","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"tenant","type":"string"},
 {"name":"sequence","type":"long","doc":"version of the aggregate, 0 for none"},
 {"name":"correlation_id","type":"string"},
 {"name":"causation_id","type":"string"},
 {"name":"trace_parent","type":"string"},
 {"name":"schema_fingerprint","type":"long","doc":"names the schema of body; this file's header has it as waybill.schema.<fingerprint, 16 hexadecimal digits>"},
 {"name":"body","type":"bytes","doc":"Avro, without a registry's id before it"},
 {"name":"xid","type":["null","long"],"doc":"the transaction that wrote it"},
 {"name":"published_partition","type":"int","doc":"-1: given up by an operator, in no log"},
 {"name":"published_offset","type":"long"},
 {"name":"published_at","type":{"type":"long","logicalType":"timestamp-micros"}}]}`

var schema = avro.MustParse(schemaText)

// record is an event as it stands in a file.
type record struct {
	ID            string `avro:"id"`
	Topic         string `avro:"topic"`
	Subject       string `avro:"subject"`
	Source        string `avro:"source"`
	Type          string `avro:"type"`
	Time          int64  `avro:"time"`
	Tenant        string `avro:"tenant"`
	Sequence      int64  `avro:"sequence"`
	CorrelationID string `avro:"correlation_id"`
	CausationID   string `avro:"causation_id"`
	TraceParent   string `avro:"trace_parent"`
	Fingerprint   int64  `avro:"schema_fingerprint"`
	Body          []byte `avro:"body"`
	XID           *int64 `avro:"xid"`
	Partition     int32  `avro:"published_partition"`
	Offset        int64  `avro:"published_offset"`
	PublishedAt   int64  `avro:"published_at"`
}

// event is the event of a record whose id was read already.
func (r *record) event(id uuid.UUID) Event {
	e := Event{
		Envelope: event.Envelope{
			ID: id, Source: r.Source, Type: r.Type, Subject: r.Subject, Time: time.UnixMicro(r.Time).UTC(),
			Tenant: r.Tenant, Sequence: r.Sequence, CorrelationID: r.CorrelationID,
			CausationID: r.CausationID, TraceParent: r.TraceParent,
		},
		Topic: r.Topic, Fingerprint: r.Fingerprint, Body: r.Body,
		Published: Published{Partition: r.Partition, Offset: r.Offset, At: time.UnixMicro(r.PublishedAt).UTC()},
	}
	if r.XID != nil {
		e.XID = *r.XID
	}
	return e
}
