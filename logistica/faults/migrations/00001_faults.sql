-- +goose Up

-- No tenant: a fault is the platform's. There are as many rows as faults at
-- most.
CREATE TABLE faults.flags (
    name    text PRIMARY KEY CHECK (length(name) <= 64),
    value   bigint NOT NULL CHECK (value > 0),
    -- Which of all things a percentage strikes: another seed, other ones.
    seed    bigint NOT NULL,
    taken   bigint NOT NULL DEFAULT 0 CHECK (taken <= value), -- of the events to come
    ends_at timestamptz,
    set_at  timestamptz NOT NULL DEFAULT now(),
    set_by  text NOT NULL CHECK (length(set_by) <= 200)
);

-- The events that were taken, so that a redelivery of one is decided the same
-- and costs no other its turn. They go when the fault is set anew or cleared.
CREATE TABLE faults.poisoned (
    event_id uuid PRIMARY KEY
);

-- +goose Down
DROP TABLE faults.poisoned, faults.flags;
