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
	stopped    text        NOT NULL DEFAULT '', -- why nothing is done; '' if it is
	PRIMARY KEY (group_name, topic, partition)
);

-- +goose Down
DROP TABLE waybill.owner;
