-- What was copied from a machine's own database, and as of which state of it: when the copy is repeated, what was
-- removed here since is told apart from what is new there, and what was removed there is removed here. A session and a
-- memory are named by their ids, a choice by its moment; nothing of what they say is here.
CREATE TABLE almanac.moved (
    tenant text COLLATE "C" NOT NULL,
    origin bytea NOT NULL,
    what text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, origin, what, id)
);
CREATE INDEX ON almanac.moved (origin, what);
