package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// Tenants tells of which tenants' events there is anything to do, out of those
// of one fetch. It is asked once the fetch is there, so that what it reads is no
// older than the events are: who begins to want a tenant's events before one of
// them is written gets it. Records of the others are passed over, without a
// transaction, as those that a filter does not admit; so are records without a
// tenant. If it fails, all of the fetch is handled.
type Tenants func(ctx context.Context, of []string) (wanted map[string]bool, err error)

// siftWithin bounds the question, for which a rebalance waits.
const siftWithin = 2 * time.Second

// sift asks whose records of a fetch are wanted; nil is everybody's.
func (s *session) sift(ctx context.Context, fetches kgo.Fetches) (wanted map[string]bool) {
	if s.cfg.Tenants == nil || fetches.Empty() {
		return nil
	}
	seen, of := map[string]bool{}, []string(nil)
	fetches.EachRecord(func(rec *kgo.Record) {
		if t := header(rec, event.HeaderTenant); t != "" && !seen[t] && s.routeOf(rec) != nil {
			seen[t] = true
			of = append(of, t)
		}
	})
	if len(of) == 0 {
		return map[string]bool{}
	}
	ctx, cancel := context.WithTimeout(ctx, siftWithin)
	defer cancel()
	wanted, err := s.cfg.Tenants(ctx, of)
	if err != nil {
		s.log.DebugContext(ctx, "whose events are wanted is not known, all are handled", "error", err)
		return nil
	}
	if wanted == nil {
		wanted = map[string]bool{}
	}
	return wanted
}

// unwanted makes a message of a record that is passed over, if its number counts.
func (s *session) unwanted(rec *kgo.Record, wanted map[string]bool) (m *message, yes bool) {
	if wanted == nil || wanted[header(rec, event.HeaderTenant)] {
		return nil, false
	}
	return s.passing(rec), true
}
