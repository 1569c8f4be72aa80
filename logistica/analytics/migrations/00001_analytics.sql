-- +goose Up
CREATE TABLE analytics.order_state (
    tenant   uuid NOT NULL,
    order_id uuid NOT NULL,
    state    text NOT NULL,
    version  bigint NOT NULL,
    PRIMARY KEY (tenant, order_id)
) WITH (fillfactor = 80);

-- A merchant's counts are kept in several lanes by order: every event of a busy
-- merchant changes the same few counts, and one row of each would let only one
-- handler at a time reach its commit.
CREATE TABLE analytics.order_count (
    tenant uuid NOT NULL,
    state  text NOT NULL,
    lane   smallint NOT NULL,
    count  bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (tenant, state, lane)
) WITH (fillfactor = 50);

ALTER TABLE analytics.order_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.order_state FORCE ROW LEVEL SECURITY;
ALTER TABLE analytics.order_count ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.order_count FORCE ROW LEVEL SECURITY;

-- nullif: once a transaction has set it, the setting is '' afterwards, not null.
CREATE POLICY by_tenant ON analytics.order_state
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY by_tenant ON analytics.order_count
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);

-- security_invoker: as its owner the view would still be bound, as a superuser's
-- it would show every tenant's counts to all.
CREATE VIEW analytics.orders_by_state WITH (security_invoker = true) AS
    SELECT tenant, state, sum(count)::bigint AS count
    FROM analytics.order_count GROUP BY tenant, state HAVING sum(count) > 0;

-- +goose Down
DROP VIEW analytics.orders_by_state;
DROP TABLE analytics.order_count, analytics.order_state;
