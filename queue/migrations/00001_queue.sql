-- +goose Up

-- A queue belongs to a tenant, '' being the system itself. Messages name it by
-- its number, which is found by tenant and name in every statement: no message
-- is reached without them.
CREATE TABLE waybill.queues (
    tenant         text        NOT NULL,
    name           text        NOT NULL,
    id             integer     GENERATED ALWAYS AS IDENTITY UNIQUE,
    lease_ms       bigint      NOT NULL,
    max_deliveries integer     NOT NULL,
    ttl_ms         bigint      NOT NULL, -- 0: kept until taken
    max_length     bigint      NOT NULL,
    dedupe_ms      bigint      NOT NULL,
    keep_dead_ms   bigint      NOT NULL,
    dead_letter    integer     REFERENCES waybill.queues (id), -- NULL: the queue's own dead letters
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, name)
);

-- Messages that are not done. Each is written once, rewritten when it is
-- leased, and deleted when it is done: rows do not live long, so vacuum must
-- come by often and without pauses.
--
-- state: ready    may be leased
--        leased   with a worker until due_at
--        delayed  until due_at
--        waiting  behind an earlier message of its group
CREATE TABLE waybill.queue_messages (
    queue        integer     NOT NULL REFERENCES waybill.queues (id),
    id           uuid        NOT NULL,
    seq          bigint      GENERATED ALWAYS AS IDENTITY, -- order of sending; never shown to tenants
    priority     smallint    NOT NULL,
    state        text        NOT NULL CHECK (state IN ('ready', 'leased', 'delayed', 'waiting')),
    due_at       timestamptz NOT NULL,
    receipt      bigint,     -- of the delivery under way
    deliveries   integer     NOT NULL DEFAULT 0,
    sent_at      timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    group_key    text,
    dedupe_id    text,
    content_type text        NOT NULL,
    headers      jsonb,
    body         bytea       NOT NULL,
    error        text,       -- of the last delivery
    PRIMARY KEY (queue, id)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX queue_messages_ready ON waybill.queue_messages (queue, priority, seq) WHERE state = 'ready';
CREATE INDEX queue_messages_due ON waybill.queue_messages (queue, due_at) WHERE state IN ('leased', 'delayed');
CREATE INDEX queue_messages_waiting ON waybill.queue_messages (queue, group_key, seq) WHERE state = 'waiting';
CREATE INDEX queue_messages_expiry ON waybill.queue_messages (queue, expires_at) WHERE expires_at IS NOT NULL;
-- One message of a group is on its way at a time, whatever the program thinks.
CREATE UNIQUE INDEX queue_messages_head ON waybill.queue_messages (queue, group_key)
    WHERE group_key IS NOT NULL AND state <> 'waiting';

-- Groups in which something happened: a message came, or its head left. Written
-- with the change itself, so that whoever reads one sees the change too.
CREATE TABLE waybill.queue_stirred (
    queue     integer NOT NULL REFERENCES waybill.queues (id),
    n         bigint  GENERATED ALWAYS AS IDENTITY,
    group_key text    NOT NULL,
    PRIMARY KEY (queue, n)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- Dedupe ids of a queue's window.
CREATE TABLE waybill.queue_dedupe (
    queue      integer     NOT NULL REFERENCES waybill.queues (id),
    dedupe_id  text        NOT NULL,
    message_id uuid        NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (queue, dedupe_id)
);
CREATE INDEX queue_dedupe_expiry ON waybill.queue_dedupe (queue, expires_at);

-- Messages that were delivered as often as their queue allows.
CREATE TABLE waybill.queue_dead (
    queue        integer     NOT NULL REFERENCES waybill.queues (id),
    id           uuid        NOT NULL,
    priority     smallint    NOT NULL,
    deliveries   integer     NOT NULL,
    sent_at      timestamptz NOT NULL,
    died_at      timestamptz NOT NULL DEFAULT now(),
    group_key    text,
    dedupe_id    text,
    content_type text        NOT NULL,
    headers      jsonb,
    body         bytea       NOT NULL,
    error        text,
    PRIMARY KEY (queue, id)
);
CREATE INDEX queue_dead_order ON waybill.queue_dead (queue, died_at, id);

-- How far a topic has been put into a queue, kept with what was put.
CREATE TABLE waybill.queue_feeds (
    queue       integer     NOT NULL REFERENCES waybill.queues (id),
    group_name  text        NOT NULL,
    topic       text        NOT NULL,
    topic_id    uuid        NOT NULL, -- a topic made anew begins anew
    partition   integer     NOT NULL,
    next_offset bigint      NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (queue, group_name, topic, partition)
);

-- +goose Down
DROP TABLE waybill.queue_feeds, waybill.queue_dead, waybill.queue_dedupe, waybill.queue_stirred, waybill.queue_messages, waybill.queues;
