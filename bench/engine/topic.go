package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/waybillhq/waybill/broker"
)

// ping asks somebody's broker before anything is made.
func (e *Engines) ping(ctx context.Context) error {
	cl, err := e.Broker.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := cl.Ping(ctx); err != nil {
		return fmt.Errorf("no broker answers at %v, which WAYBILL_KAFKA_BROKERS or the configuration file names: %w", e.Broker.Brokers, err)
	}
	return nil
}

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

// Delete has topics that others made for the measurement go as well. They need
// not be there.
func (e *Engines) Delete(names ...string) { e.topics = append(e.topics, names...) }

func (e *Engines) deleteTopics(ctx context.Context) error {
	cl, err := e.Broker.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	deleted, err := kadm.NewClient(cl).DeleteTopics(ctx, e.topics...)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range deleted {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			errs = append(errs, fmt.Errorf("%s: %w", d.Topic, d.Err))
		}
	}
	return errors.Join(errs...)
}
