package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/relay"
	"github.com/waybillhq/waybill/event"
)

// mill is Watermill's forwarder: from its SQL outbox to its Kafka publisher.
type mill struct {
	engines *engine.Engines
}

func (m *mill) name() string { return "watermill" }

func (m *mill) settings() string {
	return fmt.Sprintf("watermill forwarder, SQL subscriber with the default PostgreSQL schema, %d rows a query (default 100), "+
		"poll interval %s (default 1s), pgx adapter, Kafka publisher as it comes (sarama, synchronous)", batchSize, pollInterval)
}

func (m *mill) topic(short string) string { return m.engines.Name() + ".watermill." + short }

// table is the topic of the outbox whose events go to the topic of that short
// name: each step has its own, so that none reads over the rows of another.
func table(short string) string { return "events_" + short }

func (m *mill) prepare(ctx context.Context) error {
	if err := m.engines.Declare(ctx, m.topic(backlogTopic), m.topic(latencyTopic)); err != nil {
		return err
	}
	for _, short := range []string{backlogTopic, latencyTopic} {
		sub, err := subscriber(m.engines.DB)
		if err != nil {
			return err
		}
		if err := sub.SubscribeInitialize(table(short)); err != nil {
			return fmt.Errorf("watermill's tables: %w", err)
		}
	}
	_, err := m.engines.DB.Exec(ctx, fillWatermill)
	return err
}

// fillWatermill writes what the forwarder's publisher would: an envelope of
// JSON around the message, whose body is in base64.
const fillWatermill = `
CREATE PROCEDURE bench_fill_watermill(writer int, keys int, total bigint, destination text, body text)
LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	written bigint := 0;
	commits bigint := 0;
	id text;
BEGIN
	WHILE written < total LOOP
		n := least(total - written, CASE WHEN commits % 11 = 10 THEN 10 ELSE 1 END);
		FOR j IN written .. written + n - 1 LOOP
			id := gen_random_uuid()::text;
			INSERT INTO watermill_events_backlog (uuid, payload, metadata, transaction_id)
			VALUES (gen_random_uuid()::text, json_build_object('destination_topic', destination, 'uuid', id, 'payload', body,
				'metadata', json_build_object('ce_specversion', '1.0', 'ce_id', id, 'ce_source', '/bench', 'ce_type', 'waybill.bench.Parcel',
					'ce_subject', writer || '-' || j % keys, 'ce_time', clock_timestamp(), 'ce_tenant', 'bench', 'ce_sequence', (j / keys + 1)::text,
					'ce_correlationid', id, 'ce_causationid', id, 'traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
					'content-type', 'application/avro')), '{}', pg_current_xact_id());
		END LOOP;
		COMMIT;
		written := written + n;
		commits := commits + 1;
	END LOOP;
END $$`

func (m *mill) fill(ctx context.Context, short string, events int64) error {
	if short != backlogTopic {
		return fmt.Errorf("no backlog is written to %s", short)
	}
	keys, body := relay.Keys, base64.StdEncoding.EncodeToString(payload())
	g, ctx := errgroup.WithContext(ctx)
	for w := range keys.Writers {
		g.Go(func() error {
			conn, err := pgx.Connect(ctx, m.engines.DSN)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
				return err
			}
			_, err = conn.Exec(ctx, `CALL bench_fill_watermill($1, $2, $3, $4, $5)`, pgx.QueryExecModeExec,
				w, keys.PerWriter, keys.Share(w, events), m.topic(short), body)
			return err
		})
	}
	return g.Wait()
}

// write is an application's way as Watermill's documentation has it: a
// publisher on the transaction.
func (m *mill) write(short string) func(ctx context.Context, writer int, key string, sequence int64) error {
	body := payload()
	return func(ctx context.Context, _ int, key string, sequence int64) error {
		msg := message.NewMessage(uuid.NewString(), body)
		for name, v := range map[string]string{
			event.HeaderSpecVersion: "1.0", event.HeaderID: msg.UUID, event.HeaderSource: "/bench", event.HeaderType: "waybill.bench.Parcel",
			event.HeaderSubject: key, event.HeaderTime: time.Now().UTC().Format(time.RFC3339Nano), event.HeaderTenant: "bench",
			event.HeaderSequence: strconv.FormatInt(sequence, 10), event.HeaderCorrelationID: msg.UUID, event.HeaderContentType: event.ContentType,
		} {
			msg.Metadata.Set(name, v)
		}
		return pgx.BeginFunc(ctx, m.engines.DB, func(tx pgx.Tx) error {
			pub, err := watermillsql.NewPublisher(watermillsql.TxFromPgx(tx), watermillsql.PublisherConfig{SchemaAdapter: schema()}, watermill.NopLogger{})
			if err != nil {
				return err
			}
			return forwarder.NewPublisher(pub, forwarder.PublisherConfig{ForwarderTopic: table(short)}).Publish(m.topic(short), msg)
		})
	}
}

// start has this program play the forwarder in a process of its own.
func (m *mill) start(ctx context.Context, short string) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child.Start(ctx, "watermill's forwarder", self, []string{forwardCommand, table(short)}, m.engines.Env())
}

// settled is always so: what is published is noted batch by batch, before the
// next one is read.
func (m *mill) settled(context.Context, int64) (bool, error) { return true, nil }

// payload is as large as the body of Waybill's event.
func payload() []byte {
	b := make([]byte, relay.BodySize)
	for i := range b {
		b[i] = byte('a' + i%26)
	}
	return b
}
