package transform

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// place is a partition of a topic.
type place struct {
	topic string
	id    int32
}

// item is a record on its way: read, handled, and committed with what was made
// of it.
type item struct {
	rec   *kgo.Record
	env   event.Envelope
	fault error  // headers that cannot be read
	route *route // nil: nobody handles its type

	state state
	err   error         // of a failed one
	out   []*kgo.Record // of a done one
	what  outcome       // of a done one
	made  int           // bytes of out
}

type state int

const (
	waiting state = iota
	running
	failed
	done
)

func (g *Group) read(rec *kgo.Record) *item {
	it := &item{rec: rec}
	it.env, it.fault = consumer.ReadEnvelope(rec)
	if it.route = g.routeOf(rec, it.env.Type); it.route == nil {
		it.state, it.what = done, skipped
	}
	return it
}

func (it *item) place() place { return place{it.rec.Topic, it.rec.Partition} }

func (it *item) position() event.Position {
	return event.Position{Topic: it.rec.Topic, Partition: it.rec.Partition, Offset: it.rec.Offset}
}

// typ is the item's type in metrics.
func (it *item) typ() string {
	if it.route == nil {
		return otherType
	}
	return it.route.typ
}

func (it *item) becomes(what outcome, out []*kgo.Record) {
	it.state, it.err, it.what, it.out, it.made = done, nil, what, out, 0
	for _, r := range out {
		it.made += size(r)
	}
}

// size is about what a record holds in memory.
func size(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}
