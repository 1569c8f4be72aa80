-- +goose Up

-- The writing transaction. Whatever committed before a snapshot whose oldest
-- open transaction is X has a lower xid than X, whenever its id was made: with
-- all of that published, a reader of the table need only look at xid >= X. Rows
-- from before this column have none.
--
-- xid8 has no BRIN operator class, and a B-tree would cost every writer.
ALTER TABLE waybill.outbox_events ADD COLUMN xid bigint;
ALTER TABLE waybill.outbox_events ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX outbox_events_xid ON waybill.outbox_events USING brin (xid) WITH (pages_per_range = 32, autosummarize = on);

-- The end of the event's commit: a relay that starts skips what the slot sends
-- again and a mark says is published. Null: published from the table.
ALTER TABLE waybill.outbox_published ADD COLUMN commit_lsn pg_lsn;
CREATE INDEX outbox_published_commit_lsn ON waybill.outbox_published USING brin (commit_lsn) WITH (pages_per_range = 32, autosummarize = on);

-- Every event whose xid is lower is marked. It holds on the server it was
-- written on: a dump restored on another begins with low xids again. No
-- complete_at: the slot was lost and is not made good yet.
ALTER TABLE waybill.outbox_slots ALTER COLUMN complete_at DROP NOT NULL;
ALTER TABLE waybill.outbox_slots ALTER COLUMN complete_at DROP DEFAULT;
ALTER TABLE waybill.outbox_slots ADD COLUMN published_below bigint NOT NULL DEFAULT 0;
ALTER TABLE waybill.outbox_slots ADD COLUMN server bigint NOT NULL DEFAULT 0; -- its system identifier
-- The oldest transaction when the slot was made: it brings none below.
ALTER TABLE waybill.outbox_slots ADD COLUMN made_at_xid bigint NOT NULL DEFAULT 0;

-- Partitions the relay publishes nothing to, because the broker refused an
-- event for good. The events behind it stay in the outbox, unmarked, and are
-- published from there, in order, once it goes through or is skipped.
CREATE TABLE waybill.outbox_stopped (
    slot      text        NOT NULL,
    topic     text        NOT NULL,
    partition integer     NOT NULL,
    event_id  uuid        NOT NULL, -- the one refused
    error     text        NOT NULL,
    since     timestamptz NOT NULL DEFAULT now(),
    tried_at  timestamptz NOT NULL DEFAULT now(),
    attempts  bigint      NOT NULL DEFAULT 1,
    PRIMARY KEY (slot, topic, partition)
);

-- Events an operator gave up: never published, marked with partition and
-- offset -1.
CREATE TABLE waybill.outbox_skips (
    event_id uuid        NOT NULL PRIMARY KEY,
    reason   text        NOT NULL,
    asked_by text        NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE waybill.outbox_skips, waybill.outbox_stopped;
DELETE FROM waybill.outbox_slots WHERE complete_at IS NULL;
ALTER TABLE waybill.outbox_slots DROP COLUMN server;
ALTER TABLE waybill.outbox_slots DROP COLUMN made_at_xid;
ALTER TABLE waybill.outbox_slots DROP COLUMN published_below;
ALTER TABLE waybill.outbox_slots ALTER COLUMN complete_at SET NOT NULL;
ALTER TABLE waybill.outbox_slots ALTER COLUMN complete_at SET DEFAULT now();
ALTER TABLE waybill.outbox_published DROP COLUMN commit_lsn;
ALTER TABLE waybill.outbox_events DROP COLUMN xid;
