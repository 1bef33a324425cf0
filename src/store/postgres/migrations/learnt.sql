-- Who learns: one row for each state directory, whose starts follow each other. `through` counts the records that it
-- folded, `tick` the states of trails that it made; `host` says whose durations they are.
CREATE TABLE almanac.daemons (
    daemon bytea PRIMARY KEY CHECK (octet_length(daemon) = 16),
    host text COLLATE "C" NOT NULL,
    through bigint NOT NULL DEFAULT 0,
    tick bigint NOT NULL DEFAULT 0
);
-- Up to which of a writer's records its daemon's counts and trails count.
CREATE TABLE almanac.folds (
    incarnation bytea PRIMARY KEY,
    daemon bytea NOT NULL,
    through bigint NOT NULL
);
CREATE INDEX ON almanac.folds (daemon);
-- What a daemon counted of each tool and mode, and its last calls with a duration, so that a start reads no history.
CREATE TABLE almanac.key_counts (
    daemon bytea NOT NULL,
    tool text COLLATE "C" NOT NULL,
    mode text COLLATE "C" NOT NULL,
    failed boolean NOT NULL,
    samples bigint NOT NULL,
    last bigint NOT NULL,
    latest bytea NOT NULL,
    PRIMARY KEY (daemon, tool, mode, failed)
);
CREATE TABLE almanac.trails (
    daemon bytea NOT NULL,
    before text COLLATE "C" NOT NULL,
    last text COLLATE "C" NOT NULL,
    followers text NOT NULL,
    tick bigint NOT NULL,
    PRIMARY KEY (daemon, before, last)
);
-- The latest calls of all tenants, which a start reads, stand at the end.
CREATE INDEX ON almanac.executions USING brin (id) WITH (autosummarize = on);
