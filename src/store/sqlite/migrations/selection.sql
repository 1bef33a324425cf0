CREATE TABLE turns (
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    state TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (tenant, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_by_time ON turns (at_us);
CREATE TABLE choices (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    tool TEXT NOT NULL,
    message TEXT NOT NULL,
    trust REAL NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;
CREATE TABLE adaptations (
    tenant TEXT PRIMARY KEY,
    state BLOB NOT NULL
) STRICT, WITHOUT ROWID;
