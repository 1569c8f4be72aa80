-- +goose Up

-- Sagas as they are declared, without the functions: what it takes to judge an
-- instance. Of no tenant.
CREATE TABLE saga.plans (
	name       text        PRIMARY KEY,
	plan       jsonb       NOT NULL,
	updated_at timestamptz NOT NULL DEFAULT now()
);

-- One row for each round of a key. All but the identity follows from entries;
-- it is here to be found by.
CREATE TABLE saga.instances (
	tenant         text        NOT NULL,
	saga           text        NOT NULL,
	key            text        NOT NULL,
	round          integer     NOT NULL,
	id             uuid        NOT NULL, -- for cursors: by time, and of no tenant's counting
	state          text        NOT NULL CHECK (state IN ('running', 'compensating', 'completed', 'compensated', 'needs_operator')),
	step           text        NOT NULL, -- that is waited for; '' if it has ended
	direction      text        NOT NULL CHECK (direction IN ('forward', 'back')),
	asked          integer     NOT NULL, -- how often, since it was last resumed
	since          timestamptz NOT NULL, -- it is waited for
	due_at         timestamptz,          -- it is asked for, or given up; NULL: never
	wake_at        timestamptz,          -- when the deadlines look at it: due_at, or sooner if there is something to publish
	started_at     timestamptz NOT NULL, -- by its events' own time
	ended_at       timestamptz,          -- likewise
	updated_at     timestamptz NOT NULL,
	left_out       bigint      NOT NULL DEFAULT 0, -- events that said nothing new, past the bound of entries
	correlation_id text        NOT NULL,
	PRIMARY KEY (tenant, saga, key, round)
);
CREATE UNIQUE INDEX instances_id ON saga.instances (id);
CREATE INDEX instances_tenant ON saga.instances (tenant, id);
CREATE INDEX instances_wake ON saga.instances (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX instances_open ON saga.instances (saga, state, id) WHERE ended_at IS NULL;
CREATE INDEX instances_ended ON saga.instances (updated_at) WHERE ended_at IS NOT NULL;

-- What was seen of an instance, asked for and done by hand. An event may mean
-- several things to it.
CREATE TABLE saga.entries (
	tenant         text        NOT NULL,
	saga           text        NOT NULL,
	key            text        NOT NULL,
	round          integer     NOT NULL,
	id             uuid        NOT NULL,
	what           text        NOT NULL CHECK (what IN ('started', 'done', 'failed', 'undone', 'aborted', 'asked', 'gave_up', 'resumed', 'skipped')),
	step           text        NOT NULL,
	direction      text        NOT NULL DEFAULT '',
	type           text        NOT NULL DEFAULT '',
	source         text        NOT NULL DEFAULT '',
	time           timestamptz NOT NULL,
	seen_at        timestamptz NOT NULL,
	causation_id   text        NOT NULL DEFAULT '',
	correlation_id text        NOT NULL DEFAULT '',
	trace_parent   text        NOT NULL DEFAULT '',
	asked          integer     NOT NULL DEFAULT 0,
	due_at         timestamptz,
	by             text        NOT NULL DEFAULT '',
	reason         text        NOT NULL DEFAULT '',
	every_round    boolean     NOT NULL DEFAULT false, -- it concerns rounds that begin later, too
	unpublished    boolean     NOT NULL DEFAULT false, -- a skip that services have yet to be told of
	told_as        uuid,                               -- the event that told services of an ask or a skip, once it was seen
	PRIMARY KEY (tenant, saga, key, round, id, what, step),
	FOREIGN KEY (tenant, saga, key, round) REFERENCES saga.instances ON DELETE CASCADE
);

ALTER TABLE saga.instances ENABLE ROW LEVEL SECURITY;
ALTER TABLE saga.instances FORCE ROW LEVEL SECURITY;
ALTER TABLE saga.entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE saga.entries FORCE ROW LEVEL SECURITY;

-- Deadlines, retention and operators act for all tenants, in transactions that
-- say so. CASE, not two policies: those are joined by OR, which the planner
-- makes nothing of.
CREATE POLICY by_tenant_or_operator ON saga.instances
	USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
		ELSE tenant = current_setting('waybill.tenant', true) END);
CREATE POLICY by_tenant_or_operator ON saga.entries
	USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
		ELSE tenant = current_setting('waybill.tenant', true) END);

-- +goose Down
DROP TABLE saga.entries, saga.instances, saga.plans;
