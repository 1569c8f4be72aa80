-- +goose Up

-- Slots that were made. A slot that has a row here and is not on the server any
-- more was lost, with all that changed meanwhile.
CREATE TABLE waybill.cdc_slots (
    slot    text        NOT NULL PRIMARY KEY,
    made_at timestamptz NOT NULL DEFAULT now(),
    losses  bigint      NOT NULL DEFAULT 0
);

-- Tables whose changes are published, and how far the snapshot of each is.
CREATE TABLE waybill.cdc_tables (
    slot        text   NOT NULL,
    name        text   NOT NULL, -- schema.table
    topic       text   NOT NULL,
    topic_id    text   NOT NULL, -- another one: the topic was made anew
    relation    bigint NOT NULL, -- oid; another one: the table was made anew
    key_columns text[] NOT NULL, -- of the primary key, each with its type
    columns     text[] NOT NULL, -- that are published, each with its number and type
    attributes  int    NOT NULL, -- numbers of columns the table had given so far
    identity    text   NOT NULL, -- replica identity: d, n, f or i
    error       text,            -- why nothing of it is published just now

    -- The snapshot. One is due while fewer have begun than were asked for, or
    -- while the last is not done.
    requested   bigint NOT NULL DEFAULT 1,
    served      bigint NOT NULL DEFAULT 0,
    reason      text   NOT NULL,               -- of the last request
    sweep       boolean NOT NULL DEFAULT true, -- it also looks for keys that the table has not
    phase       text   NOT NULL DEFAULT 'waiting' CHECK (phase IN ('waiting', 'reading', 'sweeping', 'done')),
    last_key    text[],                        -- all rows up to it are published
    rows_read   bigint NOT NULL DEFAULT 0,
    rows_total  bigint,                        -- an estimate; null: there is none
    deleted     bigint NOT NULL DEFAULT 0,     -- keys the sweep found
    sweep_to    jsonb,                         -- where the topic ended when it began: {partition: offset}
    started_at  timestamptz,
    finished_at timestamptz,
    PRIMARY KEY (slot, name)
);

-- Keys found in a topic while it is swept, and whether the last record of each
-- is a row or a tombstone. What a crash leaves of an unlogged table is nothing,
-- here and in cdc_sweeps alike: the sweep then begins again.
CREATE UNLOGGED TABLE waybill.cdc_keys (
    slot   text    NOT NULL,
    name   text    NOT NULL,
    digest uuid    NOT NULL, -- of key, which may be too long for an index
    key    bytea   NOT NULL,
    live   boolean NOT NULL,
    PRIMARY KEY (slot, name, digest)
);
CREATE UNLOGGED TABLE waybill.cdc_sweeps (
    slot    text   NOT NULL,
    name    text   NOT NULL,
    served  bigint NOT NULL, -- as in cdc_tables: which snapshot it belongs to
    read_to jsonb  NOT NULL, -- the topic is read up to: {partition: offset}
    last    uuid,            -- digests up to it have been looked at
    PRIMARY KEY (slot, name)
);

-- +goose Down
DROP TABLE waybill.cdc_sweeps, waybill.cdc_keys, waybill.cdc_tables, waybill.cdc_slots;
