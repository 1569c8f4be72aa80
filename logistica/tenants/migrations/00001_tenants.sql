-- +goose Up
CREATE TABLE tenants.tenants (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- A key is 32 random bytes, so its plain SHA-256 cannot be searched; there is
-- nothing a slow hash would add but the time of every request.
CREATE TABLE tenants.api_keys (
    id         uuid PRIMARY KEY,
    tenant     uuid NOT NULL REFERENCES tenants.tenants (id) ON DELETE CASCADE,
    key_hash   bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    scope      text NOT NULL CHECK (scope IN ('merchant', 'courier', 'admin')),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
CREATE INDEX api_keys_by_tenant ON tenants.api_keys (tenant);

ALTER TABLE tenants.tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants.tenants FORCE ROW LEVEL SECURITY;
ALTER TABLE tenants.api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants.api_keys FORCE ROW LEVEL SECURITY;

-- nullif: once a transaction has set it, the setting is '' afterwards, not null.
CREATE POLICY by_tenant ON tenants.tenants
    USING (id = nullif(current_setting('waybill.tenant', true), '')::uuid);
CREATE POLICY by_tenant ON tenants.api_keys
    USING (tenant = nullif(current_setting('waybill.tenant', true), '')::uuid);

-- Authentication knows no tenant yet: it sees the one key it was shown, and
-- that key's tenant.
CREATE POLICY by_key ON tenants.api_keys FOR SELECT
    USING (key_hash = decode(current_setting('waybill.key_hash', true), 'hex'));
CREATE POLICY by_key ON tenants.tenants FOR SELECT
    USING (id = (SELECT k.tenant FROM tenants.api_keys k
        WHERE k.key_hash = decode(current_setting('waybill.key_hash', true), 'hex')));

-- +goose Down
DROP TABLE tenants.api_keys, tenants.tenants;
