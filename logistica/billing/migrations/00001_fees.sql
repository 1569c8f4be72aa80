-- +goose Up

-- An order as billing knows it. The handlers lock its row: the facts of one
-- order come from several topics, and so side by side.
CREATE TABLE billing.orders (
    tenant   uuid NOT NULL,
    order_id uuid NOT NULL,
    version  bigint NOT NULL CHECK (version >= 0), -- of the last event about it
    latest   integer NOT NULL CHECK (latest >= 0), -- attempt that was heard of
    PRIMARY KEY (tenant, order_id)
) WITH (fillfactor = 80);

CREATE TABLE billing.fees (
    tenant     uuid NOT NULL,
    order_id   uuid NOT NULL,
    attempt    integer NOT NULL CHECK (attempt >= 1),
    fee_id     uuid,
    courier_id uuid NOT NULL,
    amount     bigint NOT NULL CHECK (amount >= 0),
    currency   text NOT NULL,
    state      text NOT NULL CHECK (state IN ('BILLED', 'FAILED', 'VOIDED', 'BARRED')),
    reason     text NOT NULL DEFAULT '', -- of the state, where it is not BILLED
    made_at    timestamptz NOT NULL,     -- billed, failed or barred
    voided_at  timestamptz,
    PRIMARY KEY (tenant, order_id, attempt),
    CHECK ((state IN ('BILLED', 'VOIDED')) = (fee_id IS NOT NULL)),
    CHECK ((state = 'VOIDED') = (voided_at IS NOT NULL))
) WITH (fillfactor = 80);

-- Whatever the handlers do: a merchant owes one fee for an order at most.
CREATE UNIQUE INDEX one_standing_fee ON billing.fees (tenant, order_id) WHERE state = 'BILLED';
CREATE INDEX fees_by_time ON billing.fees (tenant, made_at, order_id, attempt) WHERE fee_id IS NOT NULL;

ALTER TABLE billing.orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE billing.orders FORCE ROW LEVEL SECURITY;
ALTER TABLE billing.fees ENABLE ROW LEVEL SECURITY;
ALTER TABLE billing.fees FORCE ROW LEVEL SECURITY;

-- nullif: once a transaction has set it, the setting is '' afterwards, not null.
CREATE POLICY by_tenant ON billing.orders
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY by_tenant ON billing.fees
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);

-- +goose Down
DROP TABLE billing.fees, billing.orders;
