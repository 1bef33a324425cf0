-- Up to which record `execution_keys` and `trails` count, and the tick of the trail that changed last.
CREATE TABLE fold (
    through INTEGER NOT NULL,
    tick INTEGER NOT NULL
) STRICT;
INSERT INTO fold
    SELECT (SELECT coalesce(max(id), 0) FROM executions), (SELECT coalesce(max(tick), 0) FROM trails);
