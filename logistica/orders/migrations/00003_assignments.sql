-- +goose Up

-- The defaults are for the rows there are, and for those that a program of the
-- version before writes while this one is rolled out. A code guards against a
-- delivery at the wrong door, so it comes from the randomness of the server, not
-- from random().
ALTER TABLE orders.orders
    ADD COLUMN attempt       integer NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    -- The attempt that the count of tries began with: a merchant who asks for a
    -- courier again gets all tries, while attempts keep rising.
    ADD COLUMN first_attempt integer NOT NULL DEFAULT 1 CHECK (first_attempt BETWEEN 1 AND attempt),
    ADD COLUMN courier       uuid,
    ADD COLUMN delivery_code text NOT NULL
        DEFAULT lpad((('x' || left(gen_random_uuid()::text, 8))::bit(32)::bigint % 10000)::text, 4, '0')
        CHECK (delivery_code ~ '^[0-9]{4}$'),
    ADD COLUMN code_tries    integer NOT NULL DEFAULT 0 CHECK (code_tries >= 0),
    ADD COLUMN distance_m    bigint CHECK (distance_m >= 0),
    ADD COLUMN proof         text CHECK (proof IN ('CODE', 'MERCHANT'));

CREATE INDEX orders_of_courier ON orders.orders (courier, id)
    WHERE courier IS NOT NULL AND state NOT IN ('DELIVERED', 'CANCELLED', 'RETURNED');
CREATE INDEX orders_by_day ON orders.orders (tenant, created_at, id);

-- What is known of each attempt at finding a courier. Facts come from several
-- topics and so in any order: each column but the key waits for its fact.
CREATE TABLE orders.assignments (
    tenant         uuid NOT NULL,
    order_id       uuid NOT NULL,
    attempt        integer NOT NULL CHECK (attempt >= 1),
    courier        uuid,
    vehicle        text,
    reserved_until timestamptz,
    pickup_eta     timestamptz,
    delivery_eta   timestamptz,
    distance_m     bigint,
    fee_id         uuid,
    fee_amount     bigint,
    fee_currency   text,
    reserved_at    timestamptz,
    failed_at      timestamptz,
    failure        text,
    billed_at      timestamptz,
    voided_at      timestamptz,
    notified_at    timestamptz,
    assigned_at    timestamptz,
    released_at    timestamptz,
    release_reason text,
    PRIMARY KEY (tenant, order_id, attempt),
    FOREIGN KEY (tenant, order_id) REFERENCES orders.orders (tenant, id) ON DELETE CASCADE
);
ALTER TABLE orders.assignments ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders.assignments FORCE ROW LEVEL SECURITY;

CREATE POLICY by_tenant ON orders.assignments
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
-- The holder of a tracking token, and the courier: the attempt that counts now.
CREATE POLICY by_tracking_token ON orders.assignments FOR SELECT
    USING ((tenant, order_id, attempt) = (
        SELECT o.tenant, o.id, o.attempt FROM orders.orders o
        WHERE o.tracking_token = current_setting('waybill.tracking_token', true)));
CREATE POLICY by_courier ON orders.assignments FOR SELECT
    USING (courier = nullif(current_setting('waybill.courier', true), '')::uuid
        AND EXISTS (SELECT FROM orders.orders o
            WHERE o.tenant = assignments.tenant AND o.id = assignments.order_id
              AND o.attempt = assignments.attempt AND o.courier = assignments.courier));

-- A courier works for several tenants, and reads the orders that are theirs to
-- carry now. They change nothing under this setting: a move acts for the tenant.
ALTER POLICY read_by_tenant_or_token ON orders.orders
    USING (CASE
        WHEN current_setting('waybill.cdc_snapshot', true) = 'on' THEN true
        WHEN nullif(current_setting('waybill.courier', true), '') IS NOT NULL
        THEN courier = current_setting('waybill.courier', true)::uuid
        WHEN nullif(current_setting('waybill.tracking_token', true), '') IS NULL
        THEN tenant = nullif(current_setting('waybill.tenant', true), '')::uuid
        ELSE tracking_token = current_setting('waybill.tracking_token', true) END);

-- +goose Down
ALTER POLICY read_by_tenant_or_token ON orders.orders
    USING (CASE
        WHEN current_setting('waybill.cdc_snapshot', true) = 'on' THEN true
        WHEN nullif(current_setting('waybill.tracking_token', true), '') IS NULL
        THEN tenant = nullif(current_setting('waybill.tenant', true), '')::uuid
        ELSE tracking_token = current_setting('waybill.tracking_token', true) END);
DROP TABLE orders.assignments;
DROP INDEX orders.orders_by_day, orders.orders_of_courier;
ALTER TABLE orders.orders
    DROP COLUMN attempt, DROP COLUMN first_attempt, DROP COLUMN courier, DROP COLUMN delivery_code,
    DROP COLUMN code_tries, DROP COLUMN distance_m, DROP COLUMN proof;
