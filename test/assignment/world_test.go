// Package assignment tests what the modules make of an order together: whatever
// comes in whatever order, twice, late, or with a crash in between, an order
// ends with one courier and one fee, or with neither.
package assignment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// plain reads bare Avro: what the registry adds is its own package's to test.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// log is all that was published, in the order of commits, and how far each
// group has come with each key of each topic: only there is the order fixed.
type log struct {
	pool    *pgxpool.Pool
	groups  []*group
	records []*kgo.Record
	last    uuid.UUID                // event taken in
	lanes   map[string][]*kgo.Record // by topic and key
}

type group struct {
	name string
	*consumer.Group
	next map[string]int // by lane
}

func (l *log) add(name string, subscribe func(*consumer.Group)) {
	g := consumer.New(consumer.Deps{DB: l.pool, Decoder: plain{}}, consumer.Config{Group: name})
	subscribe(g)
	l.groups = append(l.groups, &group{name, g, map[string]int{}})
}

// catchUp takes in what was committed since. The test writes from one goroutine,
// so the events' ids ascend as their transactions committed.
func (l *log) catchUp(ctx context.Context) error {
	rows, err := l.pool.Query(ctx, `SELECT id, topic, subject, source, type, time, tenant, sequence, correlation_id, causation_id, body
		FROM waybill.outbox_events WHERE id > $1 ORDER BY id`, l.last)
	if err != nil {
		return err
	}
	var e event.Envelope
	var topic string
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&e.ID, &topic, &e.Subject, &e.Source, &e.Type, &e.Time, &e.Tenant, &e.Sequence, &e.CorrelationID, &e.CausationID, &body}, func() error {
		rec := &kgo.Record{Topic: topic, Key: []byte(e.Subject), Value: slices.Clone(body), Timestamp: time.Now(), Offset: int64(len(l.records))}
		e.Headers(func(name, value string) {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		})
		lane := topic + " " + e.Subject
		l.records, l.last = append(l.records, rec), e.ID
		l.lanes[lane] = append(l.lanes[lane], rec)
		return nil
	})
	return err
}

// step is one event that a group may handle next.
type step struct {
	g    *group
	lane string
}

// steps are all that may come next, sorted so that a random choice repeats.
func (l *log) steps() []step {
	var out []step
	for _, g := range l.groups {
		for lane, records := range l.lanes {
			if g.next[lane] < len(records) {
				out = append(out, step{g, lane})
			}
		}
	}
	// Lanes by when their first event came, not by name: ids are random.
	slices.SortFunc(out, func(a, b step) int {
		return cmp.Or(cmp.Compare(l.lanes[a.lane][0].Offset, l.lanes[b.lane][0].Offset), cmp.Compare(a.g.name, b.g.name))
	})
	return out
}

var errCrash = errors.New("crash before the commit")

// take has a group handle the next event of a lane. back goes that many events
// back first, as a restart from an older position does; a crash undoes the
// transaction, and the event stays next.
func (l *log) take(ctx context.Context, s step, back int, crash bool) error {
	at := s.g.next[s.lane]
	for i := max(0, at-back); i <= at; i++ {
		rec := l.lanes[s.lane][i]
		err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
			handled, err := s.g.Deliver(ctx, tx, rec)
			if err == nil && handled && i < at {
				return fmt.Errorf("%s handled an event twice", s.g.name)
			}
			if err == nil && crash && i == at {
				return errCrash
			}
			return err
		})
		if errors.Is(err, errCrash) {
			return l.catchUp(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s handles %s: %w", s.g.name, typeOf(rec), err)
		}
	}
	s.g.next[s.lane] = at + 1
	return l.catchUp(ctx)
}

func typeOf(rec *kgo.Record) string { return header(rec, event.HeaderType) }

func header(rec *kgo.Record, name string) string {
	for _, h := range rec.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
