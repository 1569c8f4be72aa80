-- +goose Up

-- Who is called, about what.
CREATE TABLE webhook.endpoints (
	tenant      text        NOT NULL,
	id          uuid        NOT NULL,
	url         text        NOT NULL,
	description text        NOT NULL,
	types       text[]      NOT NULL, -- patterns; none: all
	ordered     boolean     NOT NULL, -- one event of a key at a time
	algorithm   text        NOT NULL CHECK (algorithm IN ('hmac', 'ed25519')),
	state       text        NOT NULL CHECK (state IN ('enabled', 'disabled')),
	reason      text        NOT NULL DEFAULT '', -- why it is disabled
	is_full     boolean     NOT NULL DEFAULT false, -- too much waits for it: further deliveries fail at once
	revision    bigint      NOT NULL DEFAULT 1,  -- what a sender has read, and what has changed since
	created_at  timestamptz NOT NULL DEFAULT now(),
	updated_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant, id)
);

-- What it is signed with, sealed. Two during a rotation.
CREATE TABLE webhook.secrets (
	tenant     text        NOT NULL,
	endpoint   uuid        NOT NULL,
	id         uuid        NOT NULL,
	sealed     bytea       NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	expires_at timestamptz, -- NULL: the one in use
	PRIMARY KEY (tenant, endpoint, id),
	FOREIGN KEY (tenant, endpoint) REFERENCES webhook.endpoints ON DELETE CASCADE
);
CREATE UNIQUE INDEX secrets_in_use ON webhook.secrets (tenant, endpoint) WHERE expires_at IS NULL;

-- Events as they are sent. Ranged over their own time, as the deliveries are, so
-- that a day is forgotten as a table.
CREATE TABLE webhook.messages (
	tenant       text        NOT NULL,
	event_id     uuid        NOT NULL,
	type         text        NOT NULL,
	key          text        NOT NULL,
	content_type text        NOT NULL,
	body         bytea       NOT NULL,
	stored_at    timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant, event_id)
) PARTITION BY RANGE (event_id);
CREATE TABLE webhook.messages_default PARTITION OF webhook.messages DEFAULT;

-- The log: one row for each endpoint and event, with its attempts.
CREATE TABLE webhook.deliveries (
	tenant      text        NOT NULL,
	endpoint    uuid        NOT NULL,
	event_id    uuid        NOT NULL,
	type        text        NOT NULL,
	state       text        NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
	attempts    integer     NOT NULL DEFAULT 0,    -- since it was last begun
	log         jsonb       NOT NULL DEFAULT '[]', -- the latest attempts, oldest first
	stored_at   timestamptz NOT NULL DEFAULT now(),
	finished_at timestamptz,
	PRIMARY KEY (tenant, endpoint, event_id)
) PARTITION BY RANGE (event_id);
CREATE TABLE webhook.deliveries_default PARTITION OF webhook.deliveries DEFAULT;
CREATE INDEX deliveries_failed ON webhook.deliveries (tenant, endpoint, event_id) WHERE state = 'failed';

-- What is to be done, and nothing else: small, so that the senders' looks stay
-- cheap however long the log is.
CREATE TABLE webhook.due (
	tenant   text        NOT NULL,
	endpoint uuid        NOT NULL,
	event_id uuid        NOT NULL,
	seq      bigint      GENERATED ALWAYS AS IDENTITY, -- order of keys
	key      text,                                     -- NULL where order is of no matter
	fresh    boolean     NOT NULL,                     -- a first try; retries and replays stand back
	attempts integer     NOT NULL DEFAULT 0,
	next_at  timestamptz NOT NULL DEFAULT now(),
	begun_at timestamptz NOT NULL DEFAULT now(),       -- from when on the time to give up counts
	PRIMARY KEY (tenant, endpoint, event_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
	autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
CREATE INDEX due_fresh ON webhook.due (tenant, endpoint, seq) WHERE fresh;
CREATE INDEX due_again ON webhook.due (tenant, endpoint, next_at) WHERE NOT fresh;
CREATE INDEX due_key ON webhook.due (tenant, endpoint, key, seq) WHERE key IS NOT NULL;

-- Senders that live.
CREATE TABLE webhook.senders (
	id    uuid        PRIMARY KEY,
	until timestamptz NOT NULL
);

-- Which sender has an endpoint, and how the endpoint is.
CREATE TABLE webhook.lanes (
	tenant        text        NOT NULL,
	endpoint      uuid        NOT NULL,
	owner         uuid,        -- of a sender that may be dead
	failures      integer     NOT NULL DEFAULT 0, -- in a row
	failing_since timestamptz, -- NULL: the last attempt succeeded
	open_until    timestamptz, -- the breaker: no attempt before
	PRIMARY KEY (tenant, endpoint)
);
CREATE INDEX lanes_owner ON webhook.lanes (owner);

-- Senders and keepers act for all tenants, in transactions that say so. CASE, not
-- two policies: those are joined by OR, which the planner makes nothing of.
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['endpoints', 'secrets', 'messages', 'messages_default', 'deliveries', 'deliveries_default', 'due', 'lanes'] LOOP
		EXECUTE format('ALTER TABLE webhook.%I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE webhook.%I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format($p$CREATE POLICY by_tenant_or_operator ON webhook.%I
			USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
				ELSE tenant = current_setting('waybill.tenant', true) END)$p$, t);
	END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE webhook.lanes, webhook.senders, webhook.due, webhook.deliveries, webhook.messages, webhook.secrets, webhook.endpoints;
