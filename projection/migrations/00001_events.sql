-- +goose Up
-- What happened, an event a row. Ranged over the event's own time, so that a day
-- is forgotten as one table. It has the primary key and no other index: each
-- would cost every event, and who looks for something else has a time to look in.
CREATE TABLE analytics.events (
	id       uuid        NOT NULL PRIMARY KEY,
	tenant   text        NOT NULL,
	type     text        NOT NULL,
	subject  text        NOT NULL,
	sequence bigint      NOT NULL,
	time     timestamptz NOT NULL,
	source   text        NOT NULL,
	data     json        NOT NULL -- as it came: jsonb would refuse what JSON allows
) PARTITION BY RANGE (id);

CREATE TABLE analytics.events_default PARTITION OF analytics.events DEFAULT;

-- A projector writes what all tenants did, in one statement, and says so. CASE,
-- not two policies: those are joined by OR, which the planner makes nothing of.
-- The partitions have it too, for who reads one by its name.
ALTER TABLE analytics.events ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.events FORCE ROW LEVEL SECURITY;
CREATE POLICY by_tenant_or_operator ON analytics.events
	USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
		ELSE tenant = current_setting('waybill.tenant', true) END);
ALTER TABLE analytics.events_default ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.events_default FORCE ROW LEVEL SECURITY;
CREATE POLICY by_tenant_or_operator ON analytics.events_default
	USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
		ELSE tenant = current_setting('waybill.tenant', true) END);

-- +goose Down
DROP TABLE analytics.events;
