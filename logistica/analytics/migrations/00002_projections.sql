-- +goose Up
-- Counts are added up a batch at a time, from events that the log of events had
-- not seen: an order needs no row that says how far it was counted.
DROP TABLE analytics.order_state;
-- A lane is the partition of the topic that the events came from. One process
-- reads it, one transaction at a time, so nobody waits for a count. An order's
-- lane may change with the number of partitions: a lane alone may be below zero,
-- all of them together are not.
ALTER TABLE analytics.order_count DROP CONSTRAINT order_count_count_check;

CREATE TABLE analytics.orders_by_hour (
    tenant  uuid NOT NULL,
    hour    timestamptz NOT NULL, -- its beginning, of the events' own time
    state   text NOT NULL,
    lane    smallint NOT NULL,
    entered bigint NOT NULL,      -- orders that came into the state in that hour
    PRIMARY KEY (tenant, hour, state, lane)
) WITH (fillfactor = 50);

CREATE TABLE analytics.orders_by_minute (
    tenant  uuid NOT NULL,
    minute  timestamptz NOT NULL,
    lane    smallint NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (tenant, minute, lane)
) WITH (fillfactor = 50);

-- When an order got where. What is not known yet, or never will be, is null.
CREATE TABLE analytics.deliveries (
    order_id     uuid PRIMARY KEY,
    tenant       uuid NOT NULL,
    created_at   timestamptz,
    promised_at  timestamptz,
    assigned_at  timestamptz, -- the last time
    picked_up_at timestamptz,
    delivered_at timestamptz
) WITH (fillfactor = 70);
-- Only a delivery touches them: the moves before it change no indexed column.
CREATE INDEX deliveries_of_tenant ON analytics.deliveries (tenant, delivered_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX deliveries_of_all ON analytics.deliveries USING brin (delivered_at) WITH (pages_per_range = 16, autosummarize = on);

CREATE TABLE analytics.fees_by_day (
    tenant   uuid NOT NULL,
    day      date NOT NULL, -- in America/Sao_Paulo, as the day's file has it
    currency text NOT NULL,
    lane     smallint NOT NULL,
    fees     bigint NOT NULL,      -- billed, how many
    billed   bigint NOT NULL,      -- and how much, in hundredths of the currency
    voids    bigint NOT NULL,
    voided   bigint NOT NULL,
    PRIMARY KEY (tenant, day, currency, lane)
) WITH (fillfactor = 50);

-- Couriers ride for several merchants and are the platform's: no tenant.
CREATE TABLE analytics.courier_duty (
    courier uuid PRIMARY KEY,
    version bigint NOT NULL,
    state   text NOT NULL,
    since   timestamptz NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE analytics.courier_hours (
    hour  timestamptz NOT NULL,
    state text NOT NULL,
    lane  smallint NOT NULL,
    ms    bigint NOT NULL, -- that couriers were in the state in that hour, together
    PRIMARY KEY (hour, state, lane)
) WITH (fillfactor = 50);

-- Whole milliseconds between two moments; null where one of them is unknown.
CREATE FUNCTION analytics.ms(a timestamptz, b timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT floor(extract(epoch FROM b - a) * 1000)::bigint';

-- A batch is of all tenants, and so is what an administrator reads: such
-- transactions say so. CASE, not two policies: those are joined by OR, which the
-- planner makes nothing of.
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    DROP POLICY by_tenant ON analytics.order_count;
    FOREACH t IN ARRAY ARRAY['order_count', 'orders_by_hour', 'orders_by_minute', 'deliveries', 'fees_by_day'] LOOP
        EXECUTE format('ALTER TABLE analytics.%I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE analytics.%I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format($p$CREATE POLICY by_tenant_or_operator ON analytics.%I
            USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
                ELSE tenant = nullif(current_setting('waybill.tenant', true), '')::uuid END)$p$, t);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION analytics.ms(timestamptz, timestamptz);
DROP TABLE analytics.courier_hours, analytics.courier_duty, analytics.fees_by_day, analytics.deliveries,
    analytics.orders_by_minute, analytics.orders_by_hour;
DROP POLICY by_tenant_or_operator ON analytics.order_count;
CREATE POLICY by_tenant ON analytics.order_count
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
DELETE FROM analytics.order_count; -- without its orders nothing more would be counted
ALTER TABLE analytics.order_count ADD CONSTRAINT order_count_count_check CHECK (count >= 0);
CREATE TABLE analytics.order_state (
    tenant   uuid NOT NULL,
    order_id uuid NOT NULL,
    state    text NOT NULL,
    version  bigint NOT NULL,
    PRIMARY KEY (tenant, order_id)
) WITH (fillfactor = 80);
ALTER TABLE analytics.order_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.order_state FORCE ROW LEVEL SECURITY;
CREATE POLICY by_tenant ON analytics.order_state
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
