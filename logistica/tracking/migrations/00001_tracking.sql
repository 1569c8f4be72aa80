-- +goose Up

-- An order's ride: who is out for it, and where. Places come with OrderCreated,
-- the rest with what follows; each column only moves on with a higher version,
-- so that facts may come in any order.
CREATE TABLE tracking.rides (
    order_id         uuid PRIMARY KEY,
    tenant           uuid NOT NULL,
    pickup_lat       float8,
    pickup_lng       float8,
    dropoff_lat      float8,
    dropoff_lng      float8,
    state            text NOT NULL DEFAULT 'CREATED',
    state_version    bigint NOT NULL DEFAULT 0,
    courier_id       uuid,
    assigned_version bigint NOT NULL DEFAULT 0,
    assigned_at      timestamptz,
    -- Of the last state in which nobody rides for the order: what was assigned
    -- before it is over.
    ended_version    bigint NOT NULL DEFAULT 0,
    changed_at       timestamptz NOT NULL DEFAULT now(),
    active           boolean GENERATED ALWAYS AS (assigned_version > ended_version) STORED
) WITH (fillfactor = 80);

CREATE INDEX rides_of_courier ON tracking.rides (courier_id) WHERE active;
CREATE INDEX rides_over ON tracking.rides (changed_at) WHERE NOT active;

-- The newest position of each courier. It names no order and no tenant: whose it
-- is follows from the ride alone, so that no second truth can lag behind it.
CREATE TABLE tracking.positions (
    courier_id  uuid PRIMARY KEY,
    at          timestamptz NOT NULL, -- fix_time, or received_at where the device's clock is ahead of it
    seq         bigint NOT NULL,
    fix_time    timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    lat         float8 NOT NULL,
    lng         float8 NOT NULL,
    speed_mps   real,
    heading_deg real,
    accuracy_m  real
) WITH (fillfactor = 50);

CREATE INDEX positions_old ON tracking.positions (at);

-- The last fixes of an order's ride, in a ring: a fix takes the place of the one
-- that was so many before it.
CREATE TABLE tracking.trail (
    order_id   uuid NOT NULL,
    place      smallint NOT NULL,
    tenant     uuid NOT NULL,
    courier_id uuid NOT NULL,
    at         timestamptz NOT NULL,
    seq        bigint NOT NULL,
    lat        float8 NOT NULL,
    lng        float8 NOT NULL,
    PRIMARY KEY (order_id, place)
) WITH (fillfactor = 70);

ALTER TABLE tracking.rides ENABLE ROW LEVEL SECURITY;
ALTER TABLE tracking.rides FORCE ROW LEVEL SECURITY;
ALTER TABLE tracking.positions ENABLE ROW LEVEL SECURITY;
ALTER TABLE tracking.positions FORCE ROW LEVEL SECURITY;
ALTER TABLE tracking.trail ENABLE ROW LEVEL SECURITY;
ALTER TABLE tracking.trail FORCE ROW LEVEL SECURITY;

-- nullif: once a transaction has set it, the setting is '' afterwards, not null.
CREATE POLICY by_tenant ON tracking.rides
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY by_tenant ON tracking.trail
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);

-- Whoever holds an order's tracking link sees its ride while it lasts.
CREATE POLICY by_order ON tracking.rides FOR SELECT
    USING (active AND order_id = nullif(current_setting('waybill.tracking_order', true), '')::uuid);

-- The rides that are looked up here are those that the policies above show. For
-- the module itself, which takes positions by the thousand, nothing is looked up.
CREATE POLICY by_ride ON tracking.positions FOR SELECT
    USING (CASE WHEN current_setting('waybill.tracking', true) = 'on' THEN true
        ELSE EXISTS (SELECT FROM tracking.rides r WHERE r.courier_id = positions.courier_id AND r.active) END);
CREATE POLICY by_ride ON tracking.trail FOR SELECT
    USING (CASE WHEN current_setting('waybill.tracking', true) = 'on' THEN true
        ELSE EXISTS (SELECT FROM tracking.rides r WHERE r.order_id = trail.order_id AND r.active
            AND r.order_id = nullif(current_setting('waybill.tracking_order', true), '')::uuid) END);

-- Positions come in sets of many tenants' couriers.
CREATE POLICY by_module ON tracking.rides USING (current_setting('waybill.tracking', true) = 'on');
CREATE POLICY by_module ON tracking.positions USING (current_setting('waybill.tracking', true) = 'on');
CREATE POLICY by_module ON tracking.trail USING (current_setting('waybill.tracking', true) = 'on');

-- +goose Down
DROP TABLE tracking.trail, tracking.positions, tracking.rides;
