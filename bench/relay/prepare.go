package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
)

// partitions of each topic, as the product's have.
const partitions = 6

// prepare makes the outbox's tables, the procedure that fills it, and the
// topics with their contracts.
func (r *run) prepare(ctx context.Context) (err error) {
	db := r.engines.DB
	r.slot = slotOf(r.engines)
	if err := pg.Migrate(ctx, db, tables.Migration()); err != nil {
		return err
	}
	if err := tables.EnsureDays(ctx, db, time.Now()); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, fillProcedure); err != nil {
		return fmt.Errorf("make the procedure that fills the outbox: %w", err)
	}
	r.contracts = map[string]*event.Contract{}
	var topics []broker.Topic
	for _, name := range []string{warmTopic, probeTopic, noMarksTopic, marksTopic, latencyTopic, sustainedTopic} {
		c, err := contractOf(r.engines.Name() + "." + name)
		if err != nil {
			return err
		}
		r.contracts[name] = c
		topics = append(topics, broker.Topic{Name: c.Topic, Partitions: partitions, RetentionBytes: broker.Unlimited})
	}
	if err := r.outbox().Declare(ctx, db); err != nil {
		return err
	}
	return r.declare(ctx, topics)
}

// declare leaves the client that made the topics: it remembers for a while that
// they are not there.
func (r *run) declare(ctx context.Context, topics []broker.Topic) error {
	cl, err := r.engines.Broker.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := broker.Declare(ctx, cl, r.engines.Caps, topics...); err != nil {
		return err
	}
	r.client, err = r.engines.Broker.Client()
	return err
}

func (r *run) outbox() *outbox.Outbox {
	var all []*event.Contract
	for _, c := range r.contracts {
		all = append(all, c)
	}
	return outbox.New(all, outbox.Config{})
}
