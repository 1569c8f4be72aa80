package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/message"
)

// BodySize is the bytes of an event's Avro body.
const BodySize = 300

// parcel is the event written: a key, a sequence and bytes.
type parcel struct {
	Payload []byte `avro:"payload"`

	contract *event.Contract
	key      string
	sequence int64
}

func (p *parcel) EventContract() *event.Contract { return p.contract }
func (p *parcel) EventKey() string               { return p.key }
func (p *parcel) EventSequence() int64           { return p.sequence }

// contractOf gives a topic a contract of its own: a contract is found by its
// text.
func contractOf(topic string) (*event.Contract, error) {
	return event.NewContract(topic, "/bench", fmt.Sprintf(
		`{"type":"record","name":"Parcel","namespace":"waybill.bench","doc":"on %s","fields":[{"name":"payload","type":"bytes"}]}`, topic))
}

// payload leaves two bytes of the body to its own length.
func payload() []byte {
	b := make([]byte, BodySize-2)
	for i := range b {
		b[i] = byte('a' + i%26)
	}
	return b
}

// emit puts the statement into b that writes d as a message.
func emit(ctx context.Context, b *pgx.Batch, d *parcel) error {
	e := d.contract.Envelope(ctx, d, time.Now())
	body, err := d.contract.Schema.Encode(d)
	if err != nil {
		return err
	}
	m := message.Append(message.Begin(nil), e.ID[:])
	for _, v := range []string{d.contract.Topic, e.Subject, e.Source, e.Type} {
		m = message.Append(m, v)
	}
	m = message.AppendInt64(message.Append(message.AppendTime(m, e.Time), e.Tenant), e.Sequence)
	for _, v := range []string{e.CorrelationID, e.CausationID, e.TraceParent} {
		m = message.Append(m, v)
	}
	m = message.Append(message.AppendInt64(m, d.contract.Fingerprint), body)
	b.Queue(`SELECT pg_logical_emit_message(true, $1, $2::bytea)`, message.Prefix, m)
	return nil
}
