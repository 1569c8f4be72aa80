package cdc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/wal"
)

// opTombstone is no event but the record after a deletion: a key without a
// value.
const opTombstone = 0

// typeTombstone is added to the type of a tombstone, so that handlers of the
// events do not get it.
const typeTombstone = ".tombstone"

// batchOverhead is what the broker's batch adds to the one record in it.
const batchOverhead = 1 << 10

// publish sees one record to the broker. It waits while too much is in flight.
// step tells apart the records of one change.
func (s *session) publish(t *watched, sh *shape, key []byte, c change, step int64) error {
	p := place{s.tx, s.timeline, s.tx.changes<<2 | step}
	rec, size := s.record(t, sh, key, c, p, leaveOut{})
	if size > s.limit {
		if rec, size = s.shrink(t, sh, key, c, p, size); rec == nil {
			return nil
		}
	}
	if err := s.flight.add(s.ctx, s.tx, size); err != nil {
		return err
	}
	x, op := s.tx, c.op // not the rows, which are about to be reused
	s.client.Produce(s.sending, rec, func(rec *kgo.Record, err error) {
		if err != nil {
			s.flight.fail(&refusedError{rec.Topic, string(rec.Key), size, err})
			return
		}
		s.moved.Store(true)
		if op != opTombstone {
			s.metrics.published(rec.Topic, op, x.time)
		}
		s.flight.acknowledge(x, size)
	})
	return nil
}

// record makes a broker record, and tells about how many bytes it takes.
func (s *session) record(t *watched, sh *shape, key []byte, c change, p place, out leaveOut) (*kgo.Record, int) {
	b := key[:len(key):len(key)]
	rec := &kgo.Record{Topic: t.Topic, Key: b}
	if c.op != opTombstone {
		rec.Value = sh.append(nil, c, p, out)
	}
	env := s.envelope(sh, key, c, p)
	rec.Headers = make([]kgo.RecordHeader, 0, 9)
	size := len(rec.Key) + len(rec.Value) + 32
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		size += len(name) + len(value) + 6
	})
	return rec, size
}

// envelope is the same for the same change, however often it is told: the id is
// made of its place in the WAL.
func (s *session) envelope(sh *shape, key []byte, c change, p place) event.Envelope {
	id := p.tx.lsn.String() + "#" + strconv.FormatInt(p.ordinal, 10)
	e := event.Envelope{
		ID: event.ForeignID(s.cfg.Source, id, p.tx.time), Source: s.cfg.Source, Type: sh.typ,
		Subject: string(key), Time: p.tx.time, Tenant: sh.tenantOf(c),
	}
	if c.op == opTombstone {
		e.Type += typeTombstone
	}
	return e
}

func (sh *shape) tenantOf(c change) string {
	row := c.after
	if row == nil {
		row = c.before
	}
	if sh.tenant < 0 || row == nil || row[sh.tenant].Kind != wal.Text {
		return ""
	}
	return string(row[sh.tenant].Data)
}

// shrink leaves the largest values out of a record that is too large, those of
// the old row first, until it fits. It is nil if even the key does not.
func (s *session) shrink(t *watched, sh *shape, key []byte, c change, p place, size int) (*kgo.Record, int) {
	out := leaveOut{map[int]bool{}, map[int]bool{}}
	for _, v := range sh.largest(c) {
		side := out.after
		if v.before {
			side = out.before
		}
		side[v.column] = true
		if size -= v.size; size > s.limit {
			continue
		}
		rec, exact := s.record(t, sh, key, c, p, out)
		if exact <= s.limit {
			s.omitted(t, key, len(out.before)+len(out.after), "")
			return rec, exact
		}
		size = exact
	}
	s.omitted(t, key, 1, "the whole event: its key is too large")
	return nil, 0
}

// tellAgain is how long a table's events may come without some values before it
// is said again.
const tellAgain = time.Minute

func (s *session) omitted(t *watched, key []byte, n int, what string) {
	s.metrics.omitted.WithLabelValues(t.String()).Add(float64(n))
	if what == "" {
		what = fmt.Sprintf("%d of its values, which the event names", n)
	}
	if time.Since(s.told[t.String()]) < tellAgain {
		return
	}
	s.told[t.String()] = time.Now()
	s.tell(s.ctx, incidentOmitted, t.String(), fmt.Sprintf(
		"a change of %s is larger than the %d bytes a record may have and comes without %s: raise max.message.bytes of topic %s and cdc's limit, or take large columns off the allow-list",
		t, s.limit, what, t.Topic), map[string]any{"key": fmt.Sprintf("%.200q", key), "topic": t.Topic})
}

type sized struct {
	before bool
	column int // in shape.columns
	size   int
}

// largest are the values that may be left out, in that order: the old row's,
// then the new row's, each from the largest on and without the key. Small ones
// come last.
func (sh *shape) largest(c change) []sized {
	const small = 1 << 10
	var large, rest []sized
	for _, v := range append(sh.sizes(c.before, true), sh.sizes(c.after, false)...) {
		if v.size >= small {
			large = append(large, v)
		} else {
			rest = append(rest, v)
		}
	}
	return append(large, rest...)
}

func (sh *shape) sizes(row []wal.Value, before bool) (all []sized) {
	for i, col := range sh.columns {
		if row != nil && row[col.at].Kind == wal.Text && !slices.Contains(sh.keys, col.at) {
			all = append(all, sized{before, i, len(row[col.at].Data)})
		}
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Compare(b.size, a.size) })
	return all
}

// refusedError is a record the broker did not take.
type refusedError struct {
	topic string
	key   string
	size  int
	err   error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("publish a change of key %.100q (%d bytes) to topic %q: %v", e.key, e.size, e.topic, e.err)
}

func (e *refusedError) Unwrap() error { return e.err }

// smallestLimit is where giving way to a broker ends.
const smallestLimit = 4 << 10

// learnLimit has the next session send less at once if the broker said that it
// was too much: the topic's max.message.bytes is below MaxRecordBytes.
func (c *CDC) learnLimit(ctx context.Context, err error) {
	var refused *refusedError
	if !errors.As(err, &refused) || !errors.Is(err, kerr.MessageTooLarge) || c.limit <= smallestLimit {
		return
	}
	c.limit = max(c.limit/2, smallestLimit)
	c.tell(ctx, incidentOmitted, refused.topic, fmt.Sprintf(
		"topic %s takes less than %d bytes at once: events larger than %d come without their largest values until its max.message.bytes is raised and the process restarted",
		refused.topic, c.cfg.MaxRecordBytes, c.limit), nil)
}
