-- Looks at the clock: `passed_ms` is the time that passed since the first, which no leap of the clock moves; `wall_ms` what the
-- clock said, since the epoch; `through` the id of the last record then.
CREATE TABLE age_marks (
    passed_ms INTEGER PRIMARY KEY,
    wall_ms INTEGER NOT NULL,
    through INTEGER NOT NULL
) STRICT;
