package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
)

// forwardCommand has this program play Watermill's forwarder for the outbox
// topic that follows.
const forwardCommand = "forward"

// Settings that make it as fast as it gets; the others are its defaults.
const (
	batchSize    = 1000
	pollInterval = 5 * time.Millisecond
)

func schema() watermillsql.DefaultPostgreSQLSchema {
	return watermillsql.DefaultPostgreSQLSchema{SubscribeBatchSize: batchSize}
}

func subscriber(db *pgxpool.Pool) (*watermillsql.Subscriber, error) {
	return watermillsql.NewSubscriber(watermillsql.BeginnerFromPgx(db), watermillsql.SubscriberConfig{
		ConsumerGroup: "forwarder", PollInterval: pollInterval, SchemaAdapter: schema(),
		OffsetsAdapter: watermillsql.DefaultPostgreSQLOffsetsAdapter{}, InitializeSchema: true,
	}, logger())
}

// logger tells of faults alone.
func logger() watermill.LoggerAdapter {
	return watermill.NewSlogLogger(faults())
}

// forward runs the forwarder until ctx ends.
func forward(ctx context.Context, outboxTopic string) error {
	db, err := pgxpool.New(ctx, os.Getenv("WAYBILL_DATABASE_URL")) //nolint:forbidigo // as our parent says
	if err != nil {
		return err
	}
	defer db.Close()
	sub, err := subscriber(db)
	if err != nil {
		return err
	}
	pub, err := kafka.NewPublisher(kafka.PublisherConfig{
		Brokers: brokers(),
		// Keyed, so that the events of one aggregate keep their order.
		Marshaler: kafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) {
			return m.Metadata.Get(event.HeaderSubject), nil
		}),
	}, logger())
	if err != nil {
		return fmt.Errorf("kafka publisher: %w", err)
	}
	fwd, err := forwarder.NewForwarder(sub, pub, logger(), forwarder.Config{ForwarderTopic: outboxTopic})
	if err != nil {
		return err
	}
	// It ends with ctx, and closes the subscriber; the publisher is ours.
	return errors.Join(fwd.Run(ctx), pub.Close())
}
