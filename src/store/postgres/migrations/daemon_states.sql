-- What each daemon says of itself every few seconds, for whoever looks at all of them; moments are of this server's
-- clock. A row is written in place: it has no index but its key, and room beside it.
CREATE TABLE almanac.daemon_states (
    daemon bytea PRIMARY KEY CHECK (octet_length(daemon) = 16),
    incarnation bytea NOT NULL,
    version text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    said_at timestamptz NOT NULL,
    has_ended boolean NOT NULL,
    trouble text,
    waiting bigint NOT NULL,
    spooled_bytes bigint NOT NULL,
    waiting_since timestamptz,
    put_aside bigint NOT NULL,
    behind bigint NOT NULL,
    followed_seconds double precision NOT NULL
) WITH (fillfactor = 50);
