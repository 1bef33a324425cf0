CREATE TABLE executions (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    tool TEXT NOT NULL,
    mode TEXT,
    failed INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    content_length INTEGER,
    num_perspectives INTEGER,
    num_branches INTEGER,
    thinking_budget INTEGER,
    context_tokens INTEGER,
    session TEXT,
    at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX executions_by_key ON executions (tool, mode, failed, id);
CREATE TABLE execution_keys (
    tool TEXT NOT NULL,
    mode TEXT NOT NULL,
    failed INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    PRIMARY KEY (tool, mode, failed)
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency_keys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
