package relay

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/bench/topic"
)

// verify reads every topic back.
func (r *run) verify(ctx context.Context) error {
	for _, b := range r.written {
		err := r.step(ctx, fmt.Sprintf("read back %d events", b.Events), limitFor(b.Events), func(ctx context.Context) error {
			t := topic.NewTally(Keys)
			err := topic.Read(ctx, r.engines.Broker, b.Topic, func(rec *kgo.Record) error {
				_, _, err := t.Saw(rec)
				return err
			})
			r.count(t, b.Events-t.Seen)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) count(t *topic.Tally, lost int64) {
	r.res.Lost += lost
	r.res.Reordered += t.Reordered
	r.res.Duplicates += t.Duplicates
}
