-- Who does what one daemon does for all, and until when, if it dies meanwhile.
CREATE TABLE almanac.leases (
    name text COLLATE "C" PRIMARY KEY,
    daemon bytea NOT NULL,
    until timestamptz NOT NULL
);
