-- +goose Up

-- Of all tenants, the orders whose couriers were given them and have not set out.
CREATE INDEX orders_offered ON orders.orders (updated_at) WHERE state = 'ASSIGNED' AND courier IS NOT NULL;

-- A sweep sees these and no others, and changes none: that it does as the tenant.
ALTER POLICY read_by_tenant_or_token ON orders.orders
    USING (CASE
        WHEN current_setting('waybill.cdc_snapshot', true) = 'on' THEN true
        WHEN current_setting('waybill.orders_offered', true) = 'on' THEN state = 'ASSIGNED' AND courier IS NOT NULL
        WHEN nullif(current_setting('waybill.courier', true), '') IS NOT NULL
        THEN courier = current_setting('waybill.courier', true)::uuid
        WHEN nullif(current_setting('waybill.tracking_token', true), '') IS NULL
        THEN tenant = nullif(current_setting('waybill.tenant', true), '')::uuid
        ELSE tracking_token = current_setting('waybill.tracking_token', true) END);

-- +goose Down
ALTER POLICY read_by_tenant_or_token ON orders.orders
    USING (CASE
        WHEN current_setting('waybill.cdc_snapshot', true) = 'on' THEN true
        WHEN nullif(current_setting('waybill.courier', true), '') IS NOT NULL
        THEN courier = current_setting('waybill.courier', true)::uuid
        WHEN nullif(current_setting('waybill.tracking_token', true), '') IS NULL
        THEN tenant = nullif(current_setting('waybill.tenant', true), '')::uuid
        ELSE tracking_token = current_setting('waybill.tracking_token', true) END);
DROP INDEX orders.orders_offered;
