-- +goose Up
-- One row per event and group whose effects are committed. Ranged over the
-- event's own time, so that a day is forgotten as one table.
CREATE TABLE waybill.inbox (
	event_id   uuid        NOT NULL,
	group_name text        NOT NULL,
	handled_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (event_id, group_name)
) PARTITION BY RANGE (event_id);

-- Events of days without a partition: nothing is refused for its time.
CREATE TABLE waybill.inbox_default PARTITION OF waybill.inbox DEFAULT;

-- How far a group has come: everything below next_offset is handled or parked.
CREATE TABLE waybill.watermark (
	group_name   text        NOT NULL,
	topic        text        NOT NULL,
	partition    integer     NOT NULL,
	topic_id     uuid        NOT NULL,
	leader_epoch integer     NOT NULL,
	next_offset  bigint      NOT NULL,
	updated_at   timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (group_name, topic, partition)
);

-- Events that failed, and those behind them under the same key. The lowest seq
-- of a key is its head and the only one that is 'retrying'.
CREATE TABLE waybill.parked (
	seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	group_name    text        NOT NULL,
	topic         text        NOT NULL,
	partition     integer     NOT NULL,
	"offset"      bigint      NOT NULL,
	key           bytea       NOT NULL, -- empty for records without one
	event_id      uuid        NOT NULL,
	type          text        NOT NULL,
	tenant        text        NOT NULL,
	subject       text        NOT NULL,
	sequence      bigint      NOT NULL,
	record_time   timestamptz NOT NULL,
	header_names  bytea[]     NOT NULL,
	header_values bytea[]     NOT NULL,
	value         bytea,
	state         text        NOT NULL CHECK (state IN ('retrying', 'waiting')),
	error         text        NOT NULL DEFAULT '',
	attempts      integer     NOT NULL DEFAULT 0,
	next_at       timestamptz NOT NULL DEFAULT now(),
	parked_at     timestamptz NOT NULL DEFAULT now(),
	UNIQUE (group_name, event_id, topic, partition, "offset")
);

CREATE INDEX parked_key ON waybill.parked (group_name, topic, partition, key, seq);
CREATE INDEX parked_due ON waybill.parked (group_name, next_at) WHERE state = 'retrying';

-- +goose Down
DROP TABLE waybill.parked;
DROP TABLE waybill.watermark;
DROP TABLE waybill.inbox;
