package consumer

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// message is a record on its way to its handler.
type message struct {
	rec   *kgo.Record
	env   event.Envelope
	pos   event.Position
	route *route
	fault error // headers that cannot be read
	body  any   // what its handler gets, once it is decoded
	mark  *mark // nil for one that comes from the parked table
	held  bool  // it counts against the limits of memory

	holeOK bool // it goes on whatever number is missing before it
}

// read makes a message of rec, or nil if nobody handles its type and it does not
// count.
func (g *Group) read(rec *kgo.Record) *message {
	r := g.routeOf(rec)
	if r == nil {
		return g.passing(rec)
	}
	m := &message{rec: rec, route: r, pos: event.Position{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}}
	m.env, m.fault = envelope(rec)
	return m
}

// envelope reads a record's headers. If they cannot be read its id and type
// are right all the same.
func envelope(rec *kgo.Record) (event.Envelope, error) {
	place := fmt.Sprintf("%s/%d@%d", rec.Topic, rec.Partition, rec.Offset)
	env, fault := event.ReadHeaders(len(rec.Headers), func(i int) (string, []byte) {
		return rec.Headers[i].Key, rec.Headers[i].Value
	}, rec.Timestamp, place)
	if fault != nil {
		// Reading stopped half way: the place in the log names the record
		// whatever order its headers have, and its number is found wherever it is.
		env.Type, env.Tenant = recordType(rec), header(rec, event.HeaderTenant)
		env.Sequence = 0
		if n, err := strconv.ParseInt(header(rec, event.HeaderSequence), 10, 64); err == nil {
			env.Sequence = n
		}
		env.ID = event.ForeignID("", place, rec.Timestamp)
		fault = fmt.Errorf("%w: %w", ErrUnreadable, fault)
	}
	return env, fault
}

// size is about what the message holds in memory.
func (m *message) size() int {
	n := len(m.rec.Key) + len(m.rec.Value)
	for i := range m.rec.Headers {
		n += len(m.rec.Headers[i].Key) + len(m.rec.Headers[i].Value)
	}
	return n
}
