-- +goose Up

-- Columns, not documents, for the places: change data capture lists the columns
-- it may publish, and street, number and reference are not among them.
CREATE TABLE orders.orders (
    tenant            uuid NOT NULL,
    id                uuid NOT NULL,
    tracking_token    text NOT NULL UNIQUE CHECK (length(tracking_token) >= 22),
    state             text NOT NULL CHECK (state IN (
        'CREATED', 'ASSIGNING', 'ASSIGNED', 'UNASSIGNABLE', 'PICKUP_ONGOING', 'ARRIVED_AT_MERCHANT',
        'PICKED_UP', 'DELIVERY_ONGOING', 'ARRIVED_AT_CUSTOMER', 'DELIVERED', 'CANCELLED',
        'FAILED', 'RETURNING', 'RETURNED')),
    version           bigint NOT NULL CHECK (version >= 1),
    pickup_street     text NOT NULL,
    pickup_number     text NOT NULL,
    pickup_cep        text NOT NULL,
    pickup_district   text NOT NULL,
    pickup_lat        double precision NOT NULL CHECK (pickup_lat BETWEEN -90 AND 90),
    pickup_lng        double precision NOT NULL CHECK (pickup_lng BETWEEN -180 AND 180),
    pickup_reference  text NOT NULL,
    dropoff_street    text NOT NULL,
    dropoff_number    text NOT NULL,
    dropoff_cep       text NOT NULL,
    dropoff_district  text NOT NULL,
    dropoff_lat       double precision NOT NULL CHECK (dropoff_lat BETWEEN -90 AND 90),
    dropoff_lng       double precision NOT NULL CHECK (dropoff_lng BETWEEN -180 AND 180),
    dropoff_reference text NOT NULL,
    customer_name     text NOT NULL,
    customer_phone    text NOT NULL,
    items             jsonb NOT NULL,
    total             bigint NOT NULL CHECK (total >= 0),
    currency          text NOT NULL,
    promised_at       timestamptz,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX orders_by_state ON orders.orders (tenant, state, id);

CREATE TABLE orders.transitions (
    tenant     uuid NOT NULL,
    order_id   uuid NOT NULL,
    version    bigint NOT NULL,
    from_state text NOT NULL,
    to_state   text NOT NULL,
    reason     text,
    actor      text NOT NULL CHECK (actor IN ('MERCHANT', 'COURIER', 'SYSTEM')),
    at         timestamptz NOT NULL,
    PRIMARY KEY (tenant, order_id, version),
    FOREIGN KEY (tenant, order_id) REFERENCES orders.orders (tenant, id) ON DELETE CASCADE
);

-- The answer to a repeated request is the order itself, so only its id is kept.
CREATE TABLE orders.idempotency_keys (
    tenant       uuid NOT NULL,
    key          text NOT NULL,
    request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
    order_id     uuid NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_keys_by_age ON orders.idempotency_keys (created_at);

ALTER TABLE orders.orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders.orders FORCE ROW LEVEL SECURITY;
ALTER TABLE orders.transitions ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders.transitions FORCE ROW LEVEL SECURITY;
ALTER TABLE orders.idempotency_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders.idempotency_keys FORCE ROW LEVEL SECURITY;

-- nullif: once a transaction has set it, the setting is '' afterwards, not null.
CREATE POLICY insert_by_tenant ON orders.orders FOR INSERT
    WITH CHECK (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY update_by_tenant ON orders.orders FOR UPDATE
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY delete_by_tenant ON orders.orders FOR DELETE
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY by_tenant ON orders.transitions
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY by_tenant ON orders.idempotency_keys
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);

-- Whoever holds a tracking token reads that one order, and changes nothing.
--
-- CASE, not two policies: those are joined by OR, for which the planner reads
-- both indexes and then sorts all orders of the tenant to list the newest few.
CREATE POLICY read_by_tenant_or_token ON orders.orders FOR SELECT
    USING (CASE
        WHEN nullif(current_setting('waybill.tracking_token', true), '') IS NULL
        THEN tenant = nullif(current_setting('waybill.tenant', true), '')::uuid
        ELSE tracking_token = current_setting('waybill.tracking_token', true) END);
CREATE POLICY by_tracking_token ON orders.transitions FOR SELECT
    USING ((tenant, order_id) = (
        SELECT o.tenant, o.id FROM orders.orders o
        WHERE o.tracking_token = current_setting('waybill.tracking_token', true)));

-- Housekeeping sees only keys that have outlived their promise, of any tenant.
CREATE POLICY expired ON orders.idempotency_keys FOR SELECT
    USING (current_setting('waybill.housekeeping', true) = 'on' AND created_at < now() - interval '24 hours');
CREATE POLICY expired_delete ON orders.idempotency_keys FOR DELETE
    USING (current_setting('waybill.housekeeping', true) = 'on' AND created_at < now() - interval '24 hours');

-- +goose Down
DROP TABLE orders.idempotency_keys, orders.transitions, orders.orders;
