-- +goose Up

-- A courier's key names the courier; no other does. NOT VALID: a key of that
-- scope from before names nobody and opens nothing, and row-level security hides
-- it from this transaction.
ALTER TABLE tenants.api_keys ADD COLUMN courier uuid;
ALTER TABLE tenants.api_keys ADD CONSTRAINT courier_by_scope
    CHECK ((scope = 'courier') = (courier IS NOT NULL)) NOT VALID;

-- +goose Down
ALTER TABLE tenants.api_keys DROP COLUMN courier;
