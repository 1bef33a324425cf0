-- Who writes: one row for each start of a daemon. `through` is the number of its last record here, `before` what that
-- was until the last group came; both move with each group, in its transaction.
CREATE TABLE almanac.writers (
    incarnation bytea PRIMARY KEY CHECK (octet_length(incarnation) = 16),
    through bigint NOT NULL,
    before bigint NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT now()
);
-- What was told under a key, and the record that stands for it.
CREATE TABLE almanac.call_keys (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    incarnation bytea NOT NULL,
    sequence bigint NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, key)
);
-- In which order records are listed. Those of several writers become visible out of it, so nothing is followed by it.
CREATE SEQUENCE almanac.execution_ids;
-- By the month it was stored: what its caller says of time decides nothing. No number is unique by an index, which
-- would have to be one over all months; the writer's row sees to it.
CREATE TABLE almanac.executions (
    tenant text COLLATE "C" NOT NULL,
    id bigint NOT NULL DEFAULT nextval('almanac.execution_ids'),
    incarnation bytea NOT NULL,
    sequence bigint NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    tool text COLLATE "C" NOT NULL,
    mode text COLLATE "C",
    outcome text COLLATE "C" NOT NULL,
    failed boolean NOT NULL GENERATED ALWAYS AS (outcome = 'error') STORED,
    duration_ms bigint,
    content_length bigint,
    num_perspectives bigint,
    num_branches bigint,
    thinking_budget bigint,
    context_tokens bigint,
    session text COLLATE "C",
    at_ms bigint NOT NULL,
    predicted bytea
) PARTITION BY RANGE (stored_at);
CREATE INDEX ON almanac.executions (tenant, id);
CREATE INDEX ON almanac.executions (tenant, tool, mode, failed, id);
CREATE INDEX ON almanac.executions (tenant, session, id) WHERE session IS NOT NULL;
CREATE INDEX ON almanac.executions (incarnation, sequence);
