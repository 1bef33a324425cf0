-- What daemons follow of each other. `revision` numbers a writer's transactions that wrote something other than
-- records; each moves it in its writer's row, so that those of one writer become visible in order. A row that is
-- followed says which transaction wrote it last.
ALTER TABLE almanac.writers ADD COLUMN revision bigint NOT NULL DEFAULT 0;
ALTER TABLE almanac.turns
    ADD COLUMN writer bytea, ADD COLUMN revision bigint, ADD COLUMN number bigint NOT NULL DEFAULT 0;
ALTER TABLE almanac.choices ADD COLUMN writer bytea, ADD COLUMN revision bigint;
ALTER TABLE almanac.key_counts ADD COLUMN writer bytea, ADD COLUMN revision bigint;
ALTER TABLE almanac.trails ADD COLUMN writer bytea, ADD COLUMN revision bigint;
ALTER TABLE almanac.purges ADD COLUMN writer bytea, ADD COLUMN revision bigint;
CREATE INDEX ON almanac.turns (writer, revision);
CREATE INDEX ON almanac.choices (writer, revision);
CREATE INDEX ON almanac.key_counts (writer, revision);
CREATE INDEX ON almanac.trails (writer, revision);
CREATE INDEX ON almanac.purges (writer, revision);
