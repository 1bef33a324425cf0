-- Where sessions stand.
CREATE TABLE almanac.turns (
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    state text NOT NULL,
    at_us bigint NOT NULL,
    PRIMARY KEY (tenant, session)
);
CREATE INDEX ON almanac.turns (at_us);
-- Which tools were chosen for which messages, and what a tenant's choices moved.
CREATE TABLE almanac.choices (
    tenant text COLLATE "C" NOT NULL,
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    tool text COLLATE "C" NOT NULL,
    message text NOT NULL,
    trust real NOT NULL,
    at_us bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX ON almanac.choices (tenant, tool, id);
CREATE INDEX ON almanac.choices (id);
CREATE TABLE almanac.adaptations (
    tenant text COLLATE "C" PRIMARY KEY,
    state bytea NOT NULL
);
