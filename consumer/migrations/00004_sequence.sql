-- +goose Up
-- How far a group has come in the numbers (ce_sequence) of a key, for groups
-- that ask for it. Not by partition: a key that moves to another one keeps its
-- numbers. last and reported alone change, and no index has them, so that the
-- updates stay on their page.
CREATE TABLE waybill.sequence (
	group_name text        NOT NULL,
	topic      text        NOT NULL,
	tenant     text        NOT NULL,
	key        bytea       NOT NULL,
	last       bigint      NOT NULL, -- the highest number that was handled or passed
	reported   bigint      NOT NULL DEFAULT 0, -- what is missing up to here has been told
	seen_at    timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (group_name, topic, tenant, key)
) WITH (fillfactor = 80);

-- Since when all owners of a partition have counted its keys' numbers, and the
-- last of them that did. Where another came after that one, an owner that does
-- not count or a reset, what was noted before is not to be trusted.
ALTER TABLE waybill.owner
	ADD COLUMN counted_since timestamptz,
	ADD COLUMN counted_epoch bigint NOT NULL DEFAULT 0;

ALTER TABLE waybill.parked
	ADD COLUMN passes  boolean NOT NULL DEFAULT false, -- nobody handled its type when it came: it is only counted
	ADD COLUMN hole_ok boolean NOT NULL DEFAULT false; -- it goes on whatever number is missing before it

-- What was given up is no gap.
ALTER TABLE waybill.dead_action ADD COLUMN sequence bigint NOT NULL DEFAULT 0;
CREATE INDEX dead_action_drop ON waybill.dead_action (group_name, topic, key) WHERE action = 'drop' AND sequence > 0;

-- Numbers that a group reported missing, each once, and events that came behind
-- a higher number of their key. Kept for 90 days.
CREATE TABLE waybill.gap (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	found_at   timestamptz NOT NULL DEFAULT now(),
	kind       text        NOT NULL CHECK (kind IN ('missing', 'late')),
	group_name text        NOT NULL,
	topic      text        NOT NULL,
	partition  integer     NOT NULL,
	"offset"   bigint      NOT NULL, -- of the event that told it, and its id
	event_id   uuid        NOT NULL,
	tenant     text        NOT NULL,
	key        bytea       NOT NULL,
	first      bigint      NOT NULL, -- missing: the numbers from here
	last       bigint      NOT NULL  -- to here; late: twice the event's own
);

CREATE INDEX gap_group ON waybill.gap (group_name, id);
CREATE INDEX gap_found ON waybill.gap (found_at);

-- +goose Down
DROP TABLE waybill.gap;
DROP INDEX waybill.dead_action_drop;
ALTER TABLE waybill.dead_action DROP COLUMN sequence;
ALTER TABLE waybill.parked DROP COLUMN passes, DROP COLUMN hole_ok;
ALTER TABLE waybill.owner DROP COLUMN counted_since, DROP COLUMN counted_epoch;
DROP TABLE waybill.sequence;
