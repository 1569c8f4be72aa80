package consume

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// send publishes until as many as are due are out, in ticks of 10 ms. due says
// how many are, some time after it began, and whether that is all; published counts what the broker has.
func (r *run) send(ctx context.Context, published *atomic.Int64, due func(since time.Duration) (total int64, last bool)) error {
	cl, err := r.engines.Broker.Client(kgo.ProducerLinger(5 * time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, stop := context.WithCancelCause(event.WithTenant(ctx, "bench"))
	defer stop(nil)
	note := make([]byte, noteBytes)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, n := time.Now(), published.Load()
	for last := false; !last; {
		var total int64
		for total, last = due(time.Since(began)); n < total; n++ {
			rec, err := record(ctx, r.schemaID, step{account(n), n/keys + 1, note})
			if err != nil {
				return err
			}
			cl.Produce(ctx, rec, func(_ *kgo.Record, err error) {
				if err != nil {
					stop(fmt.Errorf("publish: %w", err))
					return
				}
				published.Add(1)
			})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := cl.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	return nil
}
