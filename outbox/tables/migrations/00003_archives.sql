-- +goose Up

-- Files that events went to before they left the outbox. The digest names the
-- file's events: two hosts may each have a file of the same name.
CREATE TABLE waybill.outbox_archives (
    digest     bytea       NOT NULL PRIMARY KEY, -- SHA-256 of the events as the file has them
    file       text        NOT NULL, -- below the archive's folder
    place      text        NOT NULL, -- host and folder it was written to
    day        date,                 -- of its events; null for rows of the default partition, of any day
    events     bigint      NOT NULL,
    bytes      bigint      NOT NULL,
    first_id   uuid        NOT NULL,
    last_id    uuid        NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now(),
    dropped_at timestamptz           -- when its events left the outbox; null: they are still there
);
CREATE INDEX outbox_archives_file ON waybill.outbox_archives (file);

-- +goose Down
DROP TABLE waybill.outbox_archives;
