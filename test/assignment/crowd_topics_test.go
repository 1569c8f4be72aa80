package assignment

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/dispatch"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/saga"
)

func topics() (all []broker.Topic) {
	for _, of := range [][]broker.Topic{orders.Topics(), couriers.Topics(), billing.Topics(), dispatch.Topics(), saga.Topics()} {
		all = append(all, of...)
	}
	return all
}

// openTopics makes the contracts' topics. A Kafka that others use too has them
// for this test alone: what others left there is none of its business.
func (c *crowd) openTopics() {
	c.t.Helper()
	cl := c.engine.Client(c.t, kgo.MetadataMinAge(10*time.Millisecond))
	c.admin = kadm.NewClient(cl)
	var names []string
	for _, topic := range topics() {
		names = append(names, topic.Name)
	}
	if brokertest.Kafka() {
		c.remove(c.t.Context(), names)
		c.t.Cleanup(func() { c.remove(context.WithoutCancel(c.t.Context()), names) }) // before the client is closed, after all that reads
	}
	must(c.t, broker.Declare(c.t.Context(), cl, c.engine.Capabilities, topics()...))
}

// remove deletes topics and waits until they are gone: one made anew too early
// would go with them.
func (c *crowd) remove(ctx context.Context, names []string) {
	if _, err := c.admin.DeleteTopics(ctx, names...); err != nil {
		c.t.Error(err)
	}
	for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		there, err := c.admin.ListTopics(ctx, names...)
		left := 0
		for _, d := range there {
			if d.Err == nil {
				left++
			}
		}
		if err == nil && left == 0 {
			return
		}
		if time.Now().After(late) {
			c.t.Fatalf("%d topics are not deleted, %v", left, err)
		}
	}
}
