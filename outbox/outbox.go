// Package outbox writes events in the transaction whose facts they tell.
//
// An event added to a transaction leaves if and only if that transaction
// commits: it is a row of waybill.outbox_events, and package outbox/relay
// carries committed rows to the broker. This package links no broker and asks
// no registry; it needs the event's contract, compiled into the program.
//
// Limits: the order of events of one key is the order in which their
// transactions commit. Two transactions that change the same aggregate must
// therefore exclude each other, as they do when each locks the aggregate's row.
package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/message"
)

// DefaultMaxBytes bounds the Avro body of an event. It leaves room for the
// envelope under the 1 MiB that brokers accept of a batch by default.
const DefaultMaxBytes = 1_000_000

// Config is what may be set; its zero value works.
type Config struct {
	// MaxBytes bounds an event's Avro body, DefaultMaxBytes if zero.
	MaxBytes int
	// Now is the clock of ce_time, time.Now if nil.
	Now func() time.Time
	// Messages writes events to the WAL alone, as logical messages, and to no
	// table; the relay must then run in mode message. It saves the rows, their
	// marks and their removal. In return an event exists nowhere but in the WAL
	// the slot keeps: there must be a slot before the first Add, and if it is
	// lost so are the events it had not sent. The role needs EXECUTE on
	// pg_logical_emit_message(boolean, text, bytea).
	Messages bool
	// Notifier tells a relay that polls of new events, nobody if nil. It must
	// run.
	Notifier *Notifier
	// Gate holds writers back while too much waits to be published, none if
	// nil. It must run.
	Gate *Gate
}

// Outbox adds events of the contracts it was made with. It is safe for
// concurrent use.
type Outbox struct {
	contracts map[*event.Contract]bool
	maxBytes  int
	now       func() time.Time
	messages  bool
	notifier  *Notifier
	gate      *Gate
}

// New makes an outbox for events of the given contracts.
func New(contracts []*event.Contract, cfg Config) *Outbox {
	o := &Outbox{contracts: map[*event.Contract]bool{}, maxBytes: cfg.MaxBytes, now: cfg.Now, messages: cfg.Messages, notifier: cfg.Notifier, gate: cfg.Gate}
	for _, c := range contracts {
		o.contracts[c] = true
	}
	if o.maxBytes == 0 {
		o.maxBytes = DefaultMaxBytes
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

// Add writes events in tx. Tenant and causes come from ctx: see
// [event.WithTenant], [event.WithRequest] and [event.WithCause].
//
// It refuses an event it cannot vouch for with an error of type *Refusal, of
// which nothing is written; the caller should then roll back, which a caller
// returning the error from pgx.BeginFunc does. While the outbox's gate is closed
// it refuses every event, with *OverloadError.
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, events ...event.Data) error {
	var b pgx.Batch
	if err := o.Queue(ctx, &b, events...); err != nil {
		return err
	}
	if b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("write outbox: %w", err)
	}
	return nil
}

// Queue puts the statements that Add would run into b, so that they travel
// together with the caller's own and cost no round trip. The batch must be
// sent in the transaction the events belong to.
func (o *Outbox) Queue(ctx context.Context, b *pgx.Batch, events ...event.Data) error {
	if len(events) == 0 {
		return nil
	}
	if err := o.gate.refusal(); err != nil {
		return err
	}
	for _, d := range events {
		e, err := o.entry(d, d.EventContract().Envelope(ctx, d, o.now()))
		if err != nil {
			return err
		}
		if o.messages {
			b.Queue(EmitMessage, e.message())
		} else {
			b.Queue(insertEvent, e.row()...)
		}
	}
	o.notifier.signal()
	return nil
}

const (
	insertEvent = `INSERT INTO waybill.outbox_events
	(id, topic, subject, source, type, time, tenant, sequence, correlation_id, causation_id, trace_parent, schema_fingerprint, body)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`
	// EmitMessage writes an event to the WAL alone. Transactional: it is in the
	// stream if and only if the transaction commits.
	EmitMessage = `SELECT pg_logical_emit_message(true, '` + message.Prefix + `', $1::bytea)`
)

// entry is an event that was accepted.
type entry struct {
	event.Envelope
	contract *event.Contract
	body     []byte
}

func (o *Outbox) entry(d event.Data, e event.Envelope) (entry, error) {
	c := d.EventContract()
	if !o.contracts[c] {
		return entry{}, &Refusal{Type: c.Type, Reason: ErrUnknownType}
	}
	if err := checkEnvelope(&e); err != nil {
		return entry{}, &Refusal{Type: c.Type, Key: e.Subject, Reason: err}
	}
	body, err := c.Schema.Encode(d)
	if err != nil {
		return entry{}, &Refusal{Type: c.Type, Key: e.Subject, Reason: fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	if len(body) > o.maxBytes {
		return entry{}, &Refusal{Type: c.Type, Key: e.Subject, Reason: &TooLargeError{Size: len(body), Limit: o.maxBytes}}
	}
	return entry{e, c, body}, nil
}

// row is the entry as insertEvent takes it.
func (e *entry) row() []any {
	return []any{
		e.ID, e.contract.Topic, e.Subject, e.Source, e.Type, e.Time, e.Tenant, e.Sequence,
		e.CorrelationID, e.CausationID, e.TraceParent, e.contract.Fingerprint, e.body,
	}
}

// message is the entry as emitMessage takes it: the same columns in the same
// order.
func (e *entry) message() []byte {
	b := message.Begin(make([]byte, 0, 512+len(e.body)))
	b = message.Append(b, e.ID[:])
	b = message.Append(b, e.contract.Topic)
	b = message.Append(b, e.Subject)
	b = message.Append(b, e.Source)
	b = message.Append(b, e.Type)
	b = message.AppendTime(b, e.Time)
	b = message.Append(b, e.Tenant)
	b = message.AppendInt64(b, e.Sequence)
	b = message.Append(b, e.CorrelationID)
	b = message.Append(b, e.CausationID)
	b = message.Append(b, e.TraceParent)
	b = message.AppendInt64(b, e.contract.Fingerprint)
	return message.Append(b, e.body)
}

// execer is a pool, a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Declare stores the schemas of the outbox's contracts beside the events, for
// the relay. A program does so when it starts, after registering them.
func (o *Outbox) Declare(ctx context.Context, db execer) error {
	var prints []int64
	var subjects, texts []string
	for c := range o.contracts {
		prints = append(prints, c.Fingerprint)
		subjects = append(subjects, c.Subject())
		texts = append(texts, c.Text)
	}
	_, err := db.Exec(ctx, `INSERT INTO waybill.outbox_contracts (fingerprint, subject, schema_text)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
		ON CONFLICT (fingerprint) DO NOTHING`, prints, subjects, texts)
	if err != nil {
		return fmt.Errorf("declare contracts to the outbox: %w", err)
	}
	return nil
}
