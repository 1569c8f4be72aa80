package engine

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/broker"
)

// partitions of each topic, as the product's have.
const partitions = 6

// Declare makes topics, from which nothing is ever deleted. Those in a broker
// of somebody's go with Close.
func (e *Engines) Declare(ctx context.Context, names ...string) error {
	cl, err := e.Broker.Client() // of its own: a client remembers for a while that they are not there
	if err != nil {
		return err
	}
	defer cl.Close()
	e.topics = append(e.topics, names...)
	var topics []broker.Topic
	for _, name := range names {
		topics = append(topics, broker.Topic{
			Name: name, Partitions: partitions, Retention: broker.Unlimited, RetentionBytes: broker.Unlimited,
		})
	}
	return broker.Declare(ctx, cl, e.Caps, topics...)
}

func (e *Engines) deleteTopics(ctx context.Context) error {
	cl, err := e.Broker.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	deleted, err := kadm.NewClient(cl).DeleteTopics(ctx, e.topics...)
	if err == nil {
		err = deleted.Error()
	}
	return err
}
