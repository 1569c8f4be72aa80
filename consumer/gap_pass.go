package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// newPass is the route of events that nobody handles and that are counted.
func newPass() *route {
	r := &route{typ: otherType, form: txForm, pass: true}
	r.decode = func(context.Context, *message) (any, error) { return nil, nil } //nolint:nilnil // there is no body
	r.pace.add(time.Microsecond, 1)                                             // known: any transaction has room for it
	return r
}

// passing makes a message of a record that nobody handles, if its number counts.
// A filter by tenant leaves out whole keys, which need no counting.
func (g *Group) passing(rec *kgo.Record) *message {
	if g.cfg.Gaps == IgnoreGaps || header(rec, event.HeaderSequence) == "" {
		return nil
	}
	if f := g.cfg.Filter.Tenants; len(f) > 0 && !slices.Contains(f, header(rec, event.HeaderTenant)) {
		return nil
	}
	env, fault := envelope(rec)
	if fault != nil || env.Sequence <= 0 {
		return nil
	}
	return &message{
		rec: rec, env: env, route: g.pass,
		pos: event.Position{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset},
	}
}
