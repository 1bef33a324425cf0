-- A memory's words as terms; and of each term the rows that have it, by blocks of 1,024 rows. `state` says which
-- analysis made them: where it is another than the program's, all is made anew when the database is opened.
CREATE TABLE memory_words (
    seq INTEGER PRIMARY KEY,
    words TEXT NOT NULL,
    speaker TEXT NOT NULL
) STRICT;
CREATE TABLE memory_postings (
    tenant INTEGER NOT NULL,
    term TEXT NOT NULL,
    block INTEGER NOT NULL,
    rows BLOB NOT NULL,
    PRIMARY KEY (tenant, term, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE memory_analysis (
    version INTEGER NOT NULL
) STRICT;
-- What scoring needs, without the texts. `stamp` rises with every write. Of what was purged the number stays until the
-- next start, so that readers see that it went: `deleted` is 2 then.
CREATE TABLE memory_rows (
    seq INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    thread INTEGER,
    position INTEGER,
    length INTEGER NOT NULL,
    vector BLOB NOT NULL
) STRICT;
CREATE INDEX memory_rows_by_stamp ON memory_rows (tenant, stamp);
CREATE INDEX memory_rows_by_tenant ON memory_rows (tenant);
DROP TABLE memory_vectors;
-- Whose an earlier version was.
ALTER TABLE memory_history ADD COLUMN user_id TEXT;
UPDATE memory_history SET user_id =
    replace(replace(json_extract(metadata, '$.userId.namespace'), '%', '%25'), ':', '%3A')
    || ':' || replace(replace(json_extract(metadata, '$.userId.type'), '%', '%25'), ':', '%3A')
    || ':' || replace(replace(json_extract(metadata, '$.userId.id'), '%', '%25'), ':', '%3A')
    || coalesce(':' || json_extract(metadata, '$.userId.version'), '');
CREATE INDEX memory_history_by_user ON memory_history (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX memories_by_change ON memories (tenant, kind, deleted, updated_us, id);
