-- A memory's own keys and tags by their values, so that a filter by one need not read the metadata of all. Only keys that a
-- path spells as they are, and values of at most 200 characters; whatever else is looked for is found in the metadata.
-- `type` is 0 of a text, 1 of a number and 2 of a truth value. Triggers keep it, whichever way a memory changes; they take each
-- value once, since how a statement resolves conflicts would stand before how they do.
CREATE TABLE memory_fields (
    seq INTEGER NOT NULL,
    key TEXT NOT NULL,
    type INTEGER NOT NULL,
    value ANY NOT NULL,
    tenant INTEGER NOT NULL,
    PRIMARY KEY (seq, key, type, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_fields_by_value ON memory_fields (tenant, key, type, value);
-- Each value of each memory, one of an array as if it stood alone. Of an array's items the path is that of the array.
CREATE VIEW memory_values (seq, key, type, value, tenant) AS
    SELECT m.seq, CASE f.path WHEN '$' THEN f.key ELSE replace(substr(f.path, 3), '"', '') END AS name,
        CASE f.type WHEN 'text' THEN 0 WHEN 'integer' THEN 1 WHEN 'real' THEN 1 ELSE 2 END, f.atom, m.tenant
    FROM memories AS m, json_tree(CASE WHEN json_valid(m.metadata) THEN m.metadata ELSE '{}' END) AS f
    WHERE (f.path = '$' OR typeof(f.key) = 'integer') AND f.type IN ('text', 'integer', 'real', 'true', 'false')
        AND length(f.atom) <= 200 AND name NOT GLOB '*[^A-Za-z0-9_-]*' AND name NOT IN ('', 'role', 'schemaVersion');
CREATE TRIGGER memory_fields_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_fields SELECT DISTINCT * FROM memory_values WHERE seq = NEW.seq;
END;
CREATE TRIGGER memory_fields_changed AFTER UPDATE OF metadata, tenant ON memories
WHEN OLD.metadata IS NOT NEW.metadata OR OLD.tenant IS NOT NEW.tenant BEGIN
    DELETE FROM memory_fields WHERE seq = OLD.seq;
    INSERT INTO memory_fields SELECT DISTINCT * FROM memory_values WHERE seq = NEW.seq;
END;
CREATE TRIGGER memory_fields_removed AFTER DELETE ON memories BEGIN
    DELETE FROM memory_fields WHERE seq = OLD.seq;
END;
INSERT INTO memory_fields SELECT DISTINCT * FROM memory_values;
