CREATE TABLE trails (
    before TEXT NOT NULL,
    last TEXT NOT NULL,
    followers TEXT NOT NULL,
    tick INTEGER NOT NULL,
    PRIMARY KEY (before, last)
) STRICT, WITHOUT ROWID;
CREATE INDEX trails_by_tick ON trails (tick);
CREATE INDEX executions_by_session ON executions (tenant, session, id) WHERE session IS NOT NULL;
