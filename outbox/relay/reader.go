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
	unseen  unseen
	filled  uint64 // end of the back-fill in the ledger, 0 once it is complete
}

// topic is where a topic's records go, nil if it has stopped as a whole.
type topic struct{ *producer.Topic[tag] }

func newReader(s *session) reader {
	return reader{s: s, schemas: newSchemaIDs(s.db, s.registry), topics: map[string]*topic{}}
}

// prepare makes up for what the slot does not have, and finds what it has
// though it is published. A relay that reads messages finds rows of the time
// before there were any.
func (r *reader) prepare(ctx context.Context, complete bool) error {
	if !complete {
		if err := r.s.waitVisible(ctx); err != nil {
			return err
		}
	}
	switch {
	case r.s.cfg.NoMarks && complete:
		return nil
	case r.s.cfg.NoMarks:
		return r.backfill(ctx)
	}
	if err := r.loadResent(ctx); err != nil || complete && r.s.cfg.tables() {
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
			if err := r.keepalive(frame.WALEnd); err != nil {
				return err
			}
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
func (r *reader) keepalive(end wal.LSN) error {
	if r.s.ledger.idle() {
		r.s.stream.Confirm(end)
	}
	return r.completed(r.ctx)
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
	if r.columns.relation != rel {
		c, err := columnsOf(rel)
		if err != nil {
			return err
		}
		r.columns = c
	}
	r.columns.read(values, &r.row)
	before := r.kept
	err := r.publish(r.tx, &r.row, true)
	if r.kept > before {
		r.unseen.add(r.columns.writer(values))
	}
	return err
}

// Message hands one event to the producer that stands in the WAL alone. Any
// role that may call pg_logical_emit_message can write such a thing, and a
// slot gets every message there is: what is not ours is passed over.
func (r *reader) Message(m wal.Message) error {
	if !m.Transactional || string(m.Prefix) != message.Prefix || !r.inTx {
		return nil
	}
	if err := message.Split(m.Content, (*[message.Columns][]byte)(&r.row)); err != nil {
		r.s.malformed(r.ctx, m.LSN, err)
		return nil
	}
	if r.s.cfg.tables() {
		return r.misplaced()
	}
	return r.publish(r.tx, &r.row, false)
}

// errInWAL stops a relay that reads rows: what it may have to keep back it could
// not find again.
var errInWAL = errors.New("it stands in the WAL alone, as its writer is in mode message: run the relay in that mode until no such writer is left and it has caught up, or give the event up with `waybill outbox skip --force`")

// misplaced stands at an event that is in no table, unless it was given up.
func (r *reader) misplaced() error {
	event := r.row.id()
	skip, err := r.s.skipAsked(r.ctx, event)
	switch {
	case err != nil:
		return err
	case skip:
		r.s.tellSkip(r.ctx, place{string(r.row[message.Topic]), wholeTopic}, event)
		return nil
	case r.s.standsAt != event:
		r.s.standsAt = event
		r.s.incident(r.ctx, "event_in_wal_alone", event.String(), errInWAL.Error())
	}
	return fmt.Errorf("event %s: %w", event, errInWAL)
}

// Commit closes the entry.
func (r *reader) Commit(end wal.LSN) error {
	r.s.ledger.commit(r.tx, end)
	r.inTx = false
	return nil
}

// publish queues one event of transaction n.
func (r *reader) publish(n uint64, row *row, inTable bool) error {
	id := row.id()
	if r.resent.has(id) {
		return nil
	}
	t, err := r.topic(row)
	if err != nil || t == nil {
		return err
	}
	if t.Topic == nil {
		r.kept++
		return nil
	}
	q := t.For(row[message.Subject])
	if q.Closed() { // nothing more need be known of it
		r.kept++
		return nil
	}
	taken, err := r.offer(n, q, row, inTable)
	if err == nil && !taken {
		r.kept++
	}
	return err
}

// offer queues an event or, if no record can be made of it, its refusal. It is
// not taken if the partition has stopped: it then stays in the table, unmarked.
func (r *reader) offer(n uint64, q *producer.Partition[tag], row *row, inTable bool) (taken bool, err error) {
	rec, unfit := r.record(row)
	t := tag{id: row.id(), commit: n, size: recordOverhead, mark: inTable && !r.s.cfg.NoMarks}
	switch {
	case unfit == nil:
		t.size += int32(len(rec.Key) + len(rec.Value))
	case !errors.Is(unfit, errUnfit):
		return false, unfit
	case !r.s.cfg.keeps(): // it has to be made again to be tried again
		return true, r.stuck(place{q.Topic.Name, q.Index}, t.id, unfit)
	}
	if err := r.s.ledger.add(r.ctx, t); err != nil {
		return false, err
	}
	switch {
	case unfit != nil:
		taken = q.Reject(unfit, t)
	case r.s.once != nil:
		taken, err = r.s.once.append(r.ctx, q, rec, t)
	default:
		taken = q.Append(rec, t)
	}
	if err == nil && !taken {
		r.s.ledger.undo(t)
	}
	return taken, err
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

// topic finds where row goes. A topic that is not there stops as a whole; where
// nothing is kept in a table the relay stands at the event, and nil says that
// it was given up.
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
	case !r.s.cfg.keeps():
		return nil, r.stuck(place{name, wholeTopic}, row.id(), err)
	default:
		r.s.ledger.stop(stop{place: place{name, wholeTopic}, event: row.id(), err: err})
	}
	t := &topic{found}
	r.topics[name] = t
	return t, nil
}

// stuck ends the session at an event that cannot be published and is nowhere to
// be found again, or passes over it if an operator gave it up.
func (r *reader) stuck(at place, event uuid.UUID, why error) error {
	skip, err := r.s.skipAsked(r.ctx, event)
	if err != nil {
		return err
	}
	if skip {
		if _, err := r.s.noteSkip(r.ctx, event); err != nil {
			return err
		}
		r.s.tellSkip(r.ctx, at, event)
		return r.s.forgetStop(r.ctx, at, event)
	}
	if err := r.s.noteStop(r.ctx, &stop{place: at, event: event, err: why}); err != nil {
		return err
	}
	return fmt.Errorf("event %s: %w", event, why)
}

// malformed passes over a message that can never be an event of ours. It was
// not written by this outbox: nothing of ours is lost with it.
func (s *session) malformed(ctx context.Context, at wal.LSN, err error) {
	s.log.ErrorContext(ctx, "a logical message with our prefix is no event: passed over; only the application's role should be able to write any",
		"lsn", at, "error", err)
	s.incident(ctx, "foreign_message", at.String(), err.Error())
}
