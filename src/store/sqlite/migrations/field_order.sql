-- So that memories come in the order of an own key from its index: `type` is 0 of a text, 1 of a number, 2 of a truth
-- value, 3 of the first 200 characters of a longer text, and 4 more of an array's item, which is found, not sorted by.
DROP VIEW memory_values;
CREATE VIEW memory_values (seq, key, type, value, tenant) AS
    SELECT m.seq, CASE f.path WHEN '$' THEN f.key ELSE replace(substr(f.path, 3), '"', '') END AS name,
        CASE WHEN f.type = 'text' AND length(f.atom) > 200 THEN 3 WHEN f.type = 'text' THEN 0
             WHEN f.type IN ('integer', 'real') THEN 1 ELSE 2 END + CASE f.path WHEN '$' THEN 0 ELSE 4 END,
        CASE f.type WHEN 'text' THEN substr(f.atom, 1, 200) ELSE f.atom END, m.tenant
    FROM memories AS m, json_tree(CASE WHEN json_valid(m.metadata) THEN m.metadata ELSE '{}' END) AS f
    WHERE (f.path = '$' OR typeof(f.key) = 'integer') AND f.type IN ('text', 'integer', 'real', 'true', 'false')
        AND (f.path = '$' OR length(f.atom) <= 200)
        AND name NOT GLOB '*[^A-Za-z0-9_-]*' AND name NOT IN ('', 'role', 'schemaVersion');
DELETE FROM memory_fields;
INSERT INTO memory_fields SELECT DISTINCT * FROM memory_values;
