-- +goose Up

-- What an operator must hear of, one row for each thing and not for each time
-- it was seen. Small by itself: Record prunes it.
CREATE TABLE waybill.incidents (
    id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    last_at timestamptz NOT NULL DEFAULT now(),
    count   bigint      NOT NULL DEFAULT 1,
    part    text        NOT NULL, -- of the program
    kind    text        NOT NULL,
    subject text        NOT NULL, -- what it happened to
    text    text        NOT NULL,
    detail  jsonb       NOT NULL DEFAULT '{}',
    latest  boolean     NOT NULL DEFAULT true -- of its part, kind and subject
);

-- Repeats meet here, also those of two processes at once.
CREATE UNIQUE INDEX incidents_latest ON waybill.incidents (part, kind, subject) WHERE latest;

-- +goose Down
DROP TABLE waybill.incidents;
