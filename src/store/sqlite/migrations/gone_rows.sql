-- What a purge leaves is swept at each start, which otherwise reads a million rows for the few.
CREATE INDEX memory_rows_gone ON memory_rows (seq) WHERE deleted = 2;
