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
	gate      *Gate
}

// New makes an outbox for events of the given contracts.
func New(contracts []*event.Contract, cfg Config) *Outbox {
	o := &Outbox{contracts: map[*event.Contract]bool{}, maxBytes: cfg.MaxBytes, now: cfg.Now, gate: cfg.Gate}
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
		row, err := o.row(ctx, d)
		if err != nil {
			return err
		}
		b.Queue(insertEvent, row...)
	}
	return nil
}

const insertEvent = `INSERT INTO waybill.outbox_events
	(id, topic, subject, source, type, time, tenant, sequence, correlation_id, causation_id, trace_parent, schema_fingerprint, body)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

func (o *Outbox) row(ctx context.Context, d event.Data) ([]any, error) {
	c := d.EventContract()
	if !o.contracts[c] {
		return nil, &Refusal{Type: c.Type, Reason: ErrUnknownType}
	}
	e := c.Envelope(ctx, d, o.now())
	if err := checkEnvelope(&e); err != nil {
		return nil, &Refusal{Type: c.Type, Key: e.Subject, Reason: err}
	}
	body, err := c.Schema.Encode(d)
	if err != nil {
		return nil, &Refusal{Type: c.Type, Key: e.Subject, Reason: fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	if len(body) > o.maxBytes {
		return nil, &Refusal{Type: c.Type, Key: e.Subject, Reason: &TooLargeError{Size: len(body), Limit: o.maxBytes}}
	}
	return []any{
		e.ID, c.Topic, e.Subject, e.Source, e.Type, e.Time, e.Tenant, e.Sequence,
		e.CorrelationID, e.CausationID, e.TraceParent, c.Fingerprint, body,
	}, nil
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
