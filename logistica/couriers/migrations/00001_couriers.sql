-- +goose Up

-- A courier rides for several merchants, so the row is nobody's alone: it is
-- seen through a link, or by who acts for that courier.
CREATE TABLE couriers.couriers (
    id           uuid PRIMARY KEY,
    name         text NOT NULL CHECK (name <> ''),
    phone        text NOT NULL,
    vehicle_type text NOT NULL CHECK (vehicle_type IN ('MOTORBIKE', 'BICYCLE', 'CAR')),
    state        text NOT NULL CHECK (state IN ('OFFLINE', 'AVAILABLE', 'RESERVED', 'BUSY', 'PAUSED')),
    version      bigint NOT NULL CHECK (version >= 0),
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);

CREATE TABLE couriers.courier_tenant (
    tenant  uuid NOT NULL,
    courier uuid NOT NULL REFERENCES couriers.couriers (id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, courier)
);
CREATE INDEX courier_tenant_by_courier ON couriers.courier_tenant (courier);

-- Where each was last, for choosing. A table of its own: a courier's row is
-- locked while an order is being given away, and every ping would make it look
-- taken to whoever skips locked rows.
CREATE TABLE couriers.positions (
    courier  uuid PRIMARY KEY REFERENCES couriers.couriers (id) ON DELETE CASCADE,
    seq      bigint NOT NULL,
    lat      double precision NOT NULL CHECK (lat BETWEEN -90 AND 90),
    lng      double precision NOT NULL CHECK (lng BETWEEN -180 AND 180),
    fix_time timestamptz NOT NULL
) WITH (fillfactor = 50);

-- One row an order: what is known of its search, and the lock under which it is
-- worked on. version counts what this module has said of the order.
CREATE TABLE couriers.requests (
    tenant      uuid NOT NULL,
    order_id    uuid NOT NULL,
    version     bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    attempt     int NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    state       text NOT NULL DEFAULT 'IDLE' CHECK (state IN ('IDLE', 'WAITING', 'CLOSED')),
    told        boolean NOT NULL DEFAULT false,
    carried     boolean NOT NULL DEFAULT false,
    fresh       int NOT NULL DEFAULT 0,
    pickup_lat  double precision,
    pickup_lng  double precision,
    dropoff_lat double precision,
    dropoff_lng double precision,
    since       timestamptz NOT NULL,
    gives_up_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, order_id)
);
CREATE INDEX requests_waiting ON couriers.requests (since, order_id) WHERE state = 'WAITING';

CREATE TABLE couriers.reservations (
    tenant       uuid NOT NULL,
    order_id     uuid NOT NULL,
    attempt      int NOT NULL CHECK (attempt >= 1),
    courier      uuid NOT NULL,
    state        text NOT NULL CHECK (state IN ('RESERVED', 'CONFIRMED', 'DONE', 'RELEASED')),
    reason       text CHECK ((reason IS NOT NULL) = (state = 'RELEASED')),
    until        timestamptz NOT NULL,
    to_pickup_m  bigint NOT NULL,
    to_dropoff_m bigint NOT NULL,
    made_at      timestamptz NOT NULL,
    ended_at     timestamptz,
    PRIMARY KEY (tenant, order_id, attempt)
);
-- No double assignment, whatever the program does: a courier holds one order at
-- a time, an order one courier.
CREATE UNIQUE INDEX one_order_for_a_courier ON couriers.reservations (courier)
    WHERE state IN ('RESERVED', 'CONFIRMED');
CREATE UNIQUE INDEX one_courier_for_an_order ON couriers.reservations (tenant, order_id)
    WHERE state IN ('RESERVED', 'CONFIRMED');
CREATE INDEX reservations_by_deadline ON couriers.reservations (until) WHERE state = 'RESERVED';

ALTER TABLE couriers.couriers ENABLE ROW LEVEL SECURITY;
ALTER TABLE couriers.couriers FORCE ROW LEVEL SECURITY;
ALTER TABLE couriers.courier_tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE couriers.courier_tenant FORCE ROW LEVEL SECURITY;
ALTER TABLE couriers.positions ENABLE ROW LEVEL SECURITY;
ALTER TABLE couriers.positions FORCE ROW LEVEL SECURITY;
ALTER TABLE couriers.requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE couriers.requests FORCE ROW LEVEL SECURITY;
ALTER TABLE couriers.reservations ENABLE ROW LEVEL SECURITY;
ALTER TABLE couriers.reservations FORCE ROW LEVEL SECURITY;

-- The settings, each for one transaction or a part of it:
--   waybill.tenant                 acts for a merchant
--   waybill.courier                acts for one courier, whoever they ride for
--   waybill.couriers_choosing      may hold a courier linked to the merchant
--   waybill.couriers_serving       looks for what the courier may be given
--   waybill.couriers_housekeeping  sees what a sweep has to look at, writes nothing
-- nullif: once a transaction has set one, it is '' afterwards, not null. Each
-- setting is read by a SELECT of its own, and links are asked for by IN: both are
-- then done once a statement, where a merchant may have thousands of couriers to
-- choose from.

CREATE POLICY read_links ON couriers.courier_tenant FOR SELECT
    USING (tenant = (SELECT nullif(current_setting('waybill.tenant', true), '')::uuid)
        OR courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid)
        OR (SELECT current_setting('waybill.couriers_housekeeping', true) = 'on'));
CREATE POLICY make_links ON couriers.courier_tenant FOR INSERT
    WITH CHECK (courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid));
CREATE POLICY end_links ON couriers.courier_tenant FOR DELETE
    USING (courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid));

CREATE POLICY read_couriers ON couriers.couriers FOR SELECT
    USING (id = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid)
        OR id IN (SELECT l.courier FROM couriers.courier_tenant l WHERE l.tenant = (SELECT nullif(current_setting('waybill.tenant', true), '')::uuid))
        OR ((SELECT current_setting('waybill.couriers_housekeeping', true) = 'on') AND state = 'AVAILABLE'));
CREATE POLICY enrol ON couriers.couriers FOR INSERT
    WITH CHECK (id = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid));
-- Under couriers_choosing it is there for the lock, of a row that read_couriers
-- shows: the write comes as the courier that was chosen.
CREATE POLICY change_couriers ON couriers.couriers FOR UPDATE
    USING (id = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid)
        OR (SELECT current_setting('waybill.couriers_choosing', true) = 'on'))
    WITH CHECK (id = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid));

-- No merchant reads here where a courier is, only the choosing does.
CREATE POLICY read_positions ON couriers.positions FOR SELECT
    USING (courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid)
        OR ((SELECT current_setting('waybill.couriers_choosing', true) = 'on')
            AND courier IN (SELECT l.courier FROM couriers.courier_tenant l WHERE l.tenant = (SELECT nullif(current_setting('waybill.tenant', true), '')::uuid))));
CREATE POLICY first_position ON couriers.positions FOR INSERT
    WITH CHECK (courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid));
CREATE POLICY next_position ON couriers.positions FOR UPDATE
    USING (courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid));

CREATE POLICY by_tenant ON couriers.requests
    USING (tenant = (SELECT nullif(current_setting('waybill.tenant', true), '')::uuid));
-- A courier who becomes free is given what waits longest, whichever of their
-- merchants it is of. Found and locked here; written as that merchant.
CREATE POLICY read_waiting ON couriers.requests FOR SELECT
    USING (state = 'WAITING' AND ((SELECT current_setting('waybill.couriers_housekeeping', true) = 'on')
        OR ((SELECT current_setting('waybill.couriers_serving', true) = 'on')
            AND tenant IN (SELECT l.tenant FROM couriers.courier_tenant l WHERE l.courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid)))));
CREATE POLICY lock_waiting ON couriers.requests FOR UPDATE
    USING (state = 'WAITING' AND (SELECT current_setting('waybill.couriers_serving', true) = 'on')
        AND tenant IN (SELECT l.tenant FROM couriers.courier_tenant l WHERE l.courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid)))
    WITH CHECK (false);

CREATE POLICY by_tenant ON couriers.reservations
    USING (tenant = (SELECT nullif(current_setting('waybill.tenant', true), '')::uuid));
CREATE POLICY of_courier ON couriers.reservations FOR SELECT
    USING (courier = (SELECT nullif(current_setting('waybill.courier', true), '')::uuid));
CREATE POLICY housekeeping ON couriers.reservations FOR SELECT
    USING (state IN ('RESERVED', 'RELEASED') AND (SELECT current_setting('waybill.couriers_housekeeping', true) = 'on'));

-- +goose Down
DROP TABLE couriers.reservations, couriers.requests, couriers.positions, couriers.courier_tenant, couriers.couriers;
