package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
)

// Of the questions who has endpoints.
const (
	askApart  = 10 * time.Millisecond // at least, between two of them
	knownFor  = time.Minute           // a tenant that has is not asked about again
	knownMost = 10_000                // tenants
)

// Audience is a consumer group's Config.Tenants: of which tenants' events any
// endpoint may want to hear, a disabled one included. That a tenant has one is
// remembered for a minute, since [Store.Fan] looks anyway; that it has none is
// never: it is asked for each fetch, so that an endpoint hears of every event
// that was written after it. Questions are at least 10 ms apart, so that a busy
// log of tenants without endpoints costs a hundred looks at an index a second and
// not as many transactions as it has events.
func (s *Store) Audience() consumer.Tenants {
	a := &audience{store: s, until: map[string]time.Time{}}
	return a.among
}

type audience struct {
	store *Store
	mu    sync.Mutex
	until map[string]time.Time // tenants that have endpoints
	next  time.Time            // no question before
}

func (a *audience) among(ctx context.Context, of []string) (map[string]bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	wanted, unknown := map[string]bool{}, []string(nil)
	for _, t := range of {
		if now.Before(a.until[t]) {
			wanted[t] = true
		} else {
			unknown = append(unknown, t)
		}
	}
	if len(unknown) == 0 {
		return wanted, nil
	}
	if !sleep(ctx, max(a.next.Sub(now), 0)) {
		return nil, ctx.Err()
	}
	a.next = time.Now().Add(askApart)
	have, err := a.store.having(ctx, unknown)
	if err != nil {
		return nil, err
	}
	if len(a.until) > knownMost {
		clear(a.until)
	}
	for _, t := range have {
		wanted[t] = true
		a.until[t] = now.Add(knownFor)
	}
	return wanted, nil
}

// having is which of tenants have endpoints, in one round trip: what is sent
// together, without a begin, is a transaction.
func (s *Store) having(ctx context.Context, tenants []string) (have []string, err error) {
	b := &pgx.Batch{}
	b.Queue(`SELECT set_config('` + operatorSetting + `', 'on', true)`)
	b.Queue(`SELECT t FROM unnest($1::text[]) t WHERE EXISTS (SELECT FROM webhook.endpoints WHERE tenant = t)`, tenants).Query(func(rows pgx.Rows) error {
		have, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err := s.db.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("find tenants with webhook endpoints: %w", err)
	}
	return have, nil
}
