package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/waybillhq/waybill/broker/producer"
	"github.com/waybillhq/waybill/outbox/message"
	"github.com/waybillhq/waybill/pg/wal"
	"github.com/waybillhq/waybill/registry"
)

// reader turns rows into records, in the order it is given them. For one
// goroutine.
type reader struct {
	s       *session
	ctx     context.Context // the decoder's callbacks are given none
	tx      uint64          // number of the open transaction
	inTx    bool
	columns columns
	row     row
	recorder
	schemas *schemaIDs
	topics  map[string]*topic
	resent  resent
	looked  time.Time // at the stopped partitions
	kept    int       // events kept back behind a stop
}

// topic is where a topic's records go, nil if it has stopped as a whole.
type topic struct{ *producer.Topic[tag] }

func newReader(s *session) reader {
	return reader{s: s, schemas: newSchemaIDs(s.db, s.registry), topics: map[string]*topic{}}
}

// prepare makes up for what the slot does not have, and finds what it has
// though it is published.
func (r *reader) prepare(ctx context.Context, complete bool) error {
	switch {
	case !r.s.cfg.tables():
		return r.s.setComplete(ctx)
	case r.s.cfg.NoMarks && complete:
		return nil
	case r.s.cfg.NoMarks:
		return r.backfill(ctx)
	}
	if err := r.loadResent(ctx); err != nil || complete {
		return err
	}
	return r.backfill(ctx)
}

// stream reads the slot.
func (r *reader) stream(ctx context.Context) error {
	r.ctx = ctx
	decoder := wal.NewDecoder(r)
	r.s.log.InfoContext(ctx, "reading the outbox from the WAL")
	for {
		frame, err := r.s.stream.Next(ctx)
		if err != nil {
			return err
		}
		if frame.Data == nil {
			r.keepalive(frame.WALEnd)
		} else if err := decoder.Decode(frame.Data); err != nil {
			return err
		}
		if !r.inTx && r.due() {
			if err := r.mend(ctx); err != nil {
				return err
			}
		}
	}
}

// keepalive confirms the server's position while nothing is in flight.
// Otherwise a quiet outbox beside busy tables would keep their WAL for ever.
func (r *reader) keepalive(end wal.LSN) {
	if r.s.ledger.idle() {
		r.s.stream.Confirm(end)
	}
}

// Begin opens an entry in the ledger.
func (r *reader) Begin(t wal.Begin) error {
	r.tx, r.inTx = r.s.ledger.begin(t.CommitLSN, t.CommitTime), true
	r.resent.passed(t.CommitLSN)
	return nil
}

// Insert hands one outbox row to the producer. It waits while too much is in
// flight, which holds back the socket and with it the server.
func (r *reader) Insert(rel *wal.Relation, values []wal.Value) error {
	if !r.s.cfg.tables() {
		return nil
	}
	if r.columns.relation != rel {
		c, err := columnsOf(rel)
		if err != nil {
			return err
		}
		r.columns = c
	}
	r.columns.read(values, &r.row)
	return r.publish(r.tx, &r.row)
}

// Message hands one event to the producer that stands in the WAL alone. Any
// role that may call pg_logical_emit_message can write such a thing, and a
// slot gets every message there is: what is not ours is passed over.
func (r *reader) Message(m wal.Message) error {
	if r.s.cfg.tables() || !m.Transactional || string(m.Prefix) != message.Prefix || !r.inTx {
		return nil
	}
	if err := message.Split(m.Content, (*[message.Columns][]byte)(&r.row)); err != nil {
		r.s.malformed(r.ctx, m.LSN, err)
		return nil
	}
	return r.publish(r.tx, &r.row)
}

// Commit closes the entry.
func (r *reader) Commit(end wal.LSN) error {
	r.s.ledger.commit(r.tx, end)
	r.inTx = false
	return nil
}

// publish queues one event of transaction n.
func (r *reader) publish(n uint64, row *row) error {
	id := row.id()
	if r.resent.has(id) {
		return nil
	}
	t, err := r.topic(row)
	if err != nil {
		return err
	}
	if t.Topic == nil {
		r.kept++
		return nil
	}
	q := t.For(row[message.Subject])
	rec, err := r.record(row)
	if errors.Is(err, errUnfit) {
		return r.unfit(row, q, err)
	}
	if err != nil {
		return err
	}
	return r.enqueue(n, q, rec, id)
}

func (r *reader) enqueue(n uint64, q *producer.Partition[tag], rec *producer.Record, id uuid.UUID) error {
	size := len(rec.Key) + len(rec.Value) + recordOverhead
	if err := r.s.ledger.add(r.ctx, n, size); err != nil {
		return err
	}
	taken, err := r.queue(q, rec, tag{id: id, commit: n, size: int32(size)})
	if err != nil {
		return err
	}
	if !taken {
		// The partition has stopped: the event stays in the table, unmarked.
		r.s.ledger.undo(n, size)
		r.kept++
	}
	return nil
}

func (r *reader) queue(q *producer.Partition[tag], rec *producer.Record, t tag) (bool, error) {
	if r.s.once != nil {
		return r.s.once.append(r.ctx, q, rec, t)
	}
	return q.Append(rec, t), nil
}

// recordOverhead is about what headers and batch take of a record's memory.
const recordOverhead = 512

// errUnfit says that no record can be made of an event, whoever tries.
var errUnfit = errors.New("event cannot be published")

// record makes the record, waiting for a registry that is away.
func (r *reader) record(row *row) (*producer.Record, error) {
	if err := row.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	for wait := r.s.cfg.Retry; ; wait = min(2*wait, 20*r.s.cfg.Retry) {
		id, err := r.schemas.id(r.ctx, row.fingerprint())
		if err == nil {
			return r.make(row, id), nil
		}
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		if !errors.Is(err, registry.ErrUnavailable) {
			return nil, err
		}
		r.s.log.ErrorContext(r.ctx, "waiting for the registry: an event's schema is not known yet", "error", err, "in", wait)
		pause(r.ctx, wait)
	}
}

// unfit stops the event's partition. Without a table the event has to be held
// here, and with it everything behind it.
func (r *reader) unfit(row *row, q *producer.Partition[tag], err error) error {
	if !r.s.cfg.tables() {
		skip, lookErr := r.s.skipAsked(r.ctx, row.id())
		if lookErr != nil || skip {
			return lookErr
		}
		return &stuckError{row.id(), err}
	}
	q.Close()
	r.s.ledger.stop(stop{place: place{q.Topic.Name, q.Index}, event: row.id(), err: err})
	return nil
}

// stuckError says at which event the relay cannot go on.
type stuckError struct {
	id  uuid.UUID
	err error
}

func (e *stuckError) Error() string { return fmt.Sprintf("event %s: %v", e.id, e.err) }
func (e *stuckError) Unwrap() error { return e.err }

// topic finds where row goes. A topic that is not there stops as a whole.
func (r *reader) topic(row *row) (*topic, error) {
	if t, ok := r.topics[string(row[message.Topic])]; ok {
		return t, nil
	}
	name := string(row[message.Topic])
	found, err := r.s.producer.Topic(r.ctx, name)
	var refused *kerr.Error
	switch {
	case err == nil:
	case r.ctx.Err() != nil || !errors.As(err, &refused):
		return nil, err
	case !r.s.cfg.tables():
		return nil, &stuckError{row.id(), err}
	default:
		r.s.ledger.stop(stop{place: place{name, wholeTopic}, event: row.id(), err: err})
	}
	t := &topic{found}
	r.topics[name] = t
	return t, nil
}

// malformed passes over a message that can never be an event of ours. It was
// not written by this outbox: nothing of ours is lost with it.
func (s *session) malformed(ctx context.Context, at wal.LSN, err error) {
	s.log.ErrorContext(ctx, "a logical message with our prefix is no event: passed over; only the application's role should be able to write any",
		"lsn", at, "error", err)
	s.incident(ctx, "foreign_message", at.String(), err.Error())
}
