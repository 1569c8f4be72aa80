-- +goose Up

-- A key that was rotated goes on until ends_at: whoever bears it has that long
-- to take the new one. hint is what people tell keys apart by.
ALTER TABLE tenants.api_keys
    ADD COLUMN hint text NOT NULL DEFAULT '' CHECK (length(hint) <= 16),
    ADD COLUMN ends_at timestamptz;
CREATE INDEX api_keys_listed ON tenants.api_keys (tenant, id DESC);
DROP INDEX tenants.api_keys_by_tenant;

-- Administrators are the platform's, and it is no merchant. NOT VALID: an
-- administrator's key of a merchant from before opens nothing.
ALTER TABLE tenants.api_keys ADD CONSTRAINT platform_by_scope
    CHECK ((scope = 'merchant') = (tenant <> '00000000-0000-7000-8000-000000000000')) NOT VALID;

-- Who keeps the directory reads every tenant's name, in a transaction that says
-- so; it reads their keys one tenant at a time.
CREATE POLICY by_directory ON tenants.tenants FOR SELECT
    USING (current_setting('waybill.directory', true) = 'all');

-- +goose Down
DROP POLICY by_directory ON tenants.tenants;
CREATE INDEX api_keys_by_tenant ON tenants.api_keys (tenant);
ALTER TABLE tenants.api_keys DROP COLUMN ends_at, DROP COLUMN hint, DROP CONSTRAINT platform_by_scope;
DROP INDEX tenants.api_keys_listed;
