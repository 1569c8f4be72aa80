-- +goose Up
-- Who works on a partition for a group. Each assignment takes a new epoch, and
-- whatever an assignment writes is written only while its epoch is the current
-- one. The row changes with its owner and not with the work, so that reading it
-- in each claim stays cheap.
CREATE TABLE waybill.owner (
	group_name text        NOT NULL,
	topic      text        NOT NULL,
	partition  integer     NOT NULL,
	epoch      bigint      NOT NULL,
	member     text        NOT NULL,
	since      timestamptz NOT NULL DEFAULT now(),
	stopped    text        NOT NULL DEFAULT '', -- why nothing is done until somebody sees to it; '' if it is
	stalled    text        NOT NULL DEFAULT '', -- what it does not get past; '' if it does
	inbox_keep interval    NOT NULL DEFAULT '0', -- for so long the group needs its claims
	PRIMARY KEY (group_name, topic, partition)
);

-- The farthest next_offset there was since the last reset: what is read again
-- before it may have been handled, and what is read behind it was not.
ALTER TABLE waybill.watermark ADD COLUMN reached bigint NOT NULL DEFAULT 0;
UPDATE waybill.watermark SET reached = next_offset;

-- +goose Down
ALTER TABLE waybill.watermark DROP COLUMN reached;
DROP TABLE waybill.owner;
