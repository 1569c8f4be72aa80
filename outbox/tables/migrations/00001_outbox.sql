-- +goose Up

-- One row per event, written in the transaction whose fact it tells. The relay
-- reads the inserts from the WAL; nothing ever updates or deletes a row here:
-- whole days are dropped.
--
-- Partitioned by id, which is a UUIDv7 and so carries its own day: the primary
-- key can then be the id alone.
CREATE TABLE waybill.outbox_events (
    id                 uuid        NOT NULL PRIMARY KEY,
    topic              text        NOT NULL,
    subject            text        NOT NULL, -- aggregate id; the record's key
    source             text        NOT NULL,
    type               text        NOT NULL,
    time               timestamptz NOT NULL,
    tenant             text        NOT NULL,
    sequence           bigint      NOT NULL, -- 0: the aggregate has no version
    correlation_id     text        NOT NULL,
    causation_id       text        NOT NULL,
    trace_parent       text        NOT NULL,
    schema_fingerprint bigint      NOT NULL, -- of waybill.outbox_contracts
    body               bytea       NOT NULL  -- Avro, without the registry's id
) PARTITION BY RANGE (id);

-- Takes what a wrong clock dates outside the days made ahead, so that no
-- business transaction fails for want of a partition.
CREATE TABLE waybill.outbox_events_default PARTITION OF waybill.outbox_events DEFAULT;

-- What the relay has seen acknowledged by the broker. Appended, never updated:
-- an UPDATE of the event's row would more than double the WAL and slow down its
-- reading. An event published twice (after a crash) has two rows.
CREATE TABLE waybill.outbox_published (
    id            uuid        NOT NULL,
    published_at  timestamptz NOT NULL,
    log_partition integer     NOT NULL,
    log_offset    bigint      NOT NULL
) PARTITION BY RANGE (id);
CREATE TABLE waybill.outbox_published_default PARTITION OF waybill.outbox_published DEFAULT;
CREATE INDEX outbox_published_id ON waybill.outbox_published (id);

-- Schemas that bodies were written with, by fingerprint: a relay can then
-- publish the rows of a program it has never met, and register the schema anew
-- in a registry that lost it.
CREATE TABLE waybill.outbox_contracts (
    fingerprint bigint      NOT NULL PRIMARY KEY,
    subject     text        NOT NULL, -- in the registry
    schema_text text        NOT NULL,
    declared_at timestamptz NOT NULL DEFAULT now()
);

-- Slots whose stream is known to be complete: all that committed before the
-- slot was made has been published from the table. A slot without a row here
-- was made and then a crash came in between.
CREATE TABLE waybill.outbox_slots (
    slot        text        NOT NULL PRIMARY KEY,
    complete_at timestamptz NOT NULL DEFAULT now()
);

-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = 'waybill_outbox') THEN
        CREATE PUBLICATION waybill_outbox FOR TABLE waybill.outbox_events
            WITH (publish = 'insert', publish_via_partition_root = true);
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP PUBLICATION IF EXISTS waybill_outbox;
DROP TABLE waybill.outbox_slots, waybill.outbox_contracts, waybill.outbox_published, waybill.outbox_events;
