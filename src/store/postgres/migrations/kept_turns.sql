-- What is kept of sessions' last turns: without the message, which the digest finds it by. They go with their session.
CREATE TABLE almanac.kept_turns (
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    digest bytea NOT NULL,
    state text NOT NULL,
    at_us bigint NOT NULL,
    PRIMARY KEY (tenant, session, number),
    FOREIGN KEY (tenant, session) REFERENCES almanac.turns ON DELETE CASCADE
);
CREATE INDEX ON almanac.kept_turns (at_us);
