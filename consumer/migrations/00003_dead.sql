-- +goose Up
-- An event that its policy gives up is dead. It stays at the head of its key,
-- and the key waits behind it, until somebody has it tried again ('redrive') or
-- dropped. Its row is also the outbox of its copy in the dead letter topic:
-- death_id names the death, copied_at says that the broker has the copy.
ALTER TABLE waybill.parked DROP CONSTRAINT parked_state_check;
ALTER TABLE waybill.parked
	ADD CONSTRAINT parked_state_check CHECK (state IN ('retrying', 'waiting', 'dead', 'redrive')),
	ADD COLUMN failures        integer NOT NULL DEFAULT 0,  -- all that failed, also in place
	ADD COLUMN class           text    NOT NULL DEFAULT '', -- of the error, by the policy
	ADD COLUMN cause           text    NOT NULL DEFAULT '', -- the error without what is particular to the event
	ADD COLUMN cause_id        text    NOT NULL DEFAULT '',
	ADD COLUMN first_failed_at timestamptz,
	ADD COLUMN last_failed_at  timestamptz,
	ADD COLUMN redriven_at     timestamptz,
	ADD COLUMN dead_at         timestamptz,
	ADD COLUMN death_id        uuid,
	ADD COLUMN copied_at       timestamptz,
	ADD COLUMN copy_tried_at   timestamptz,
	ADD COLUMN copy_error      text    NOT NULL DEFAULT '';

DROP INDEX waybill.parked_due;
CREATE INDEX parked_due ON waybill.parked (group_name, next_at) WHERE state IN ('retrying', 'redrive');
CREATE INDEX parked_dead ON waybill.parked (group_name, cause_id) WHERE state = 'dead';
CREATE INDEX parked_uncopied ON waybill.parked (group_name, dead_at) WHERE death_id IS NOT NULL AND copied_at IS NULL;
CREATE INDEX parked_event ON waybill.parked (event_id);

-- Who had which event tried again or dropped, when and why. One run is one
-- request. Kept for 90 days.
CREATE TABLE waybill.dead_action (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run        uuid        NOT NULL,
	at         timestamptz NOT NULL DEFAULT now(),
	action     text        NOT NULL CHECK (action IN ('redrive', 'drop')),
	by         text        NOT NULL,
	reason     text        NOT NULL,
	group_name text        NOT NULL,
	topic      text        NOT NULL,
	partition  integer     NOT NULL,
	"offset"   bigint      NOT NULL,
	key        bytea       NOT NULL,
	event_id   uuid        NOT NULL,
	type       text        NOT NULL,
	tenant     text        NOT NULL,
	class      text        NOT NULL,
	error      text        NOT NULL
);

CREATE INDEX dead_action_run ON waybill.dead_action (run);
CREATE INDEX dead_action_at ON waybill.dead_action (at);

-- +goose Down
DROP TABLE waybill.dead_action;
DROP INDEX waybill.parked_event;
DROP INDEX waybill.parked_uncopied;
DROP INDEX waybill.parked_dead;
DROP INDEX waybill.parked_due;
-- What was dead is tried again.
UPDATE waybill.parked SET state = 'retrying', next_at = now() WHERE state IN ('dead', 'redrive');
CREATE INDEX parked_due ON waybill.parked (group_name, next_at) WHERE state = 'retrying';
ALTER TABLE waybill.parked DROP CONSTRAINT parked_state_check;
ALTER TABLE waybill.parked
	ADD CONSTRAINT parked_state_check CHECK (state IN ('retrying', 'waiting')),
	DROP COLUMN failures, DROP COLUMN class, DROP COLUMN cause, DROP COLUMN cause_id,
	DROP COLUMN first_failed_at, DROP COLUMN last_failed_at, DROP COLUMN redriven_at,
	DROP COLUMN dead_at, DROP COLUMN death_id,
	DROP COLUMN copied_at, DROP COLUMN copy_tried_at, DROP COLUMN copy_error;
