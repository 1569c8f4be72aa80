package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

const consumeWatermillPart = "consume-watermill"

func watermillConsumer() consumePeer {
	return consumePeer{
		name: "watermill", part: consumeWatermillPart,
		settings: fmt.Sprintf("a router on watermill-kafka as it comes, which handles one message of a partition at a time; a transaction for each message, "+
			"with middleware.Deduplicator in it, whose repository is a table; %d connections", consumeConns),
		tables: `CREATE TABLE seen (key uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`,
		clear:  `TRUNCATE seen`,
	}
}

// consumeWatermill runs a router until ctx ends. Its documentation leaves
// effects that happen once, on a broker that delivers at least once, to a
// deduplication of one's own. This is Watermill's own middleware for that with
// the repository in the handler's database, and in its transaction: a key that
// were noted outside it would be lost or left behind by a crash.
func consumeWatermill(ctx context.Context, group string) error {
	db, err := opened(ctx, consumeConns)
	if err != nil {
		return err
	}
	defer db.Close()
	schemas, err := registry.New(os.Getenv("WAYBILL_REGISTRY_URL"), registry.Config{}) //nolint:forbidigo // as our parent says
	if err != nil {
		return err
	}
	defer schemas.Close()
	cfg := kafka.DefaultSaramaSubscriberConfig()
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	sub, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: brokers(), ConsumerGroup: group, Unmarshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: cfg,
	}, logger())
	if err != nil {
		return fmt.Errorf("kafka subscriber: %w", err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger())
	if err != nil {
		return errors.Join(err, sub.Close())
	}
	once := &middleware.Deduplicator{
		KeyFactory: middleware.NewMessageHasherFromMetadataField(event.HeaderID), Repository: seen{}, Timeout: time.Minute,
	}
	router.AddMiddleware(inTransaction(db), once.Middleware) //nolint:contextcheck // a message has its own
	decoder := registry.NewDecoder(schemas)
	router.AddConsumerHandler("effect", consumeTopic, sub, func(m *message.Message) error { //nolint:contextcheck // as above
		var s step
		if err := decoder.Decode(m.Context(), m.Payload, &s, contract.Schema); err != nil {
			return err
		}
		_, err := txOf(m.Context()).Exec(m.Context(), insertEffect, s.Account, s.N)
		return err
	})
	return router.Run(ctx) // it closes the subscriber
}

type txKey struct{}

func txOf(ctx context.Context) pgx.Tx { return ctx.Value(txKey{}).(pgx.Tx) }

// inTransaction gives each message a transaction, which is committed before the
// message is acknowledged.
func inTransaction(db *pgxpool.Pool) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) (produced []*message.Message, err error) {
			ctx := m.Context()
			err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
				m.SetContext(context.WithValue(ctx, txKey{}, tx))
				produced, err = next(m)
				return err
			})
			return produced, err
		}
	}
}

// seen is the Deduplicator's repository. Nothing expires in the time this takes.
type seen struct{}

func (seen) IsDuplicate(ctx context.Context, key string) (bool, error) {
	tag, err := txOf(ctx).Exec(ctx, `INSERT INTO seen (key) VALUES ($1) ON CONFLICT DO NOTHING`, key)
	return tag.RowsAffected() == 0, err
}
