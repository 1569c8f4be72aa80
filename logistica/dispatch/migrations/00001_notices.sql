-- +goose Up

-- An order as dispatch knows it. The handlers lock its row: the facts of one
-- order come from several topics, and so side by side.
CREATE TABLE dispatch.orders (
    tenant   uuid NOT NULL,
    order_id uuid NOT NULL,
    version  bigint NOT NULL CHECK (version >= 0), -- of the last event about it
    latest   integer NOT NULL CHECK (latest >= 0), -- attempt that was heard of
    PRIMARY KEY (tenant, order_id)
) WITH (fillfactor = 80);

CREATE TABLE dispatch.notices (
    tenant     uuid NOT NULL,
    order_id   uuid NOT NULL,
    attempt    integer NOT NULL CHECK (attempt >= 1),
    courier_id uuid NOT NULL,
    fee_id     uuid, -- not known to a release that comes first
    state      text NOT NULL CHECK (state IN ('SENT', 'FAILED', 'WITHDRAWN', 'BARRED')),
    reason     text NOT NULL DEFAULT '', -- of the state, where it is not SENT
    made_at    timestamptz NOT NULL,     -- sent, failed or barred
    ended_at   timestamptz,              -- withdrawn
    PRIMARY KEY (tenant, order_id, attempt),
    CHECK ((state = 'WITHDRAWN') = (ended_at IS NOT NULL))
) WITH (fillfactor = 80);

-- Whatever the handlers do: one courier at most is told to come for an order.
CREATE UNIQUE INDEX one_standing_notice ON dispatch.notices (tenant, order_id) WHERE state = 'SENT';
CREATE INDEX notices_of_courier ON dispatch.notices (courier_id, made_at DESC) WHERE state = 'SENT';

ALTER TABLE dispatch.orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE dispatch.orders FORCE ROW LEVEL SECURITY;
ALTER TABLE dispatch.notices ENABLE ROW LEVEL SECURITY;
ALTER TABLE dispatch.notices FORCE ROW LEVEL SECURITY;

-- nullif: once a transaction has set it, the setting is '' afterwards, not null.
CREATE POLICY by_tenant ON dispatch.orders
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY insert_by_tenant ON dispatch.notices FOR INSERT
    WITH CHECK (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY update_by_tenant ON dispatch.notices FOR UPDATE
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY delete_by_tenant ON dispatch.notices FOR DELETE
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);

-- A courier rides for several merchants, and reads what is meant for them of
-- each. CASE, not two policies: those are joined by OR, for which the planner
-- reads both indexes.
CREATE POLICY read_by_tenant_or_courier ON dispatch.notices FOR SELECT
    USING (CASE
        WHEN nullif(current_setting('waybill.courier', true), '') IS NULL
        THEN tenant = nullif(current_setting('waybill.tenant', true), '')::uuid
        ELSE courier_id = nullif(current_setting('waybill.courier', true), '')::uuid END);

-- +goose Down
DROP TABLE dispatch.notices, dispatch.orders;
