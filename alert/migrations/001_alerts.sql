-- +goose Up

-- Alerts that fire, and those whose end some sink has not heard of yet. A row
-- goes when all have.
CREATE TABLE waybill.alerts (
    rule        text        NOT NULL,
    group_name  text        NOT NULL,
    severity    text        NOT NULL,
    text        text        NOT NULL,
    since       timestamptz NOT NULL, -- when the condition began
    fired_at    timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,          -- null: it fires
    PRIMARY KEY (rule, group_name)
);

-- What each sink was told of an alert, and when it is to be told again.
CREATE TABLE waybill.alert_notices (
    rule       text        NOT NULL,
    group_name text        NOT NULL,
    sink       text        NOT NULL,
    fired_at   timestamptz NOT NULL,
    heard      text        NOT NULL DEFAULT '' CHECK (heard IN ('', 'firing', 'resolved')),
    attempts   integer     NOT NULL DEFAULT 0,
    next_at    timestamptz NOT NULL DEFAULT now(),
    claimed_until timestamptz NOT NULL DEFAULT '-infinity', -- somebody is telling it just now
    error      text        NOT NULL DEFAULT '',
    PRIMARY KEY (rule, group_name, sink),
    FOREIGN KEY (rule, group_name) REFERENCES waybill.alerts ON DELETE CASCADE
);

CREATE INDEX alert_notices_due ON waybill.alert_notices (sink, next_at);

-- +goose Down
DROP TABLE waybill.alert_notices;
DROP TABLE waybill.alerts;
