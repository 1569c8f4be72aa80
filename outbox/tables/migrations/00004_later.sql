-- +goose Up

-- Events that are to leave at some moment to come, in the form of
-- waybill.outbox_events, where they are moved when that moment is there. Their
-- ids carry it, so that they lie in the partition of the day they leave on.
CREATE TABLE waybill.outbox_later (
    id                 uuid        NOT NULL PRIMARY KEY,
    due_at             timestamptz NOT NULL,
    topic              text        NOT NULL,
    subject            text        NOT NULL,
    source             text        NOT NULL,
    type               text        NOT NULL,
    time               timestamptz NOT NULL,
    tenant             text        NOT NULL,
    sequence           bigint      NOT NULL,
    correlation_id     text        NOT NULL,
    causation_id       text        NOT NULL,
    trace_parent       text        NOT NULL,
    schema_fingerprint bigint      NOT NULL,
    body               bytea       NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX outbox_later_due ON waybill.outbox_later (due_at, id);

-- +goose Down
DROP TABLE waybill.outbox_later;
