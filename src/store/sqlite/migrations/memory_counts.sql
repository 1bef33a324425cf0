-- How many memories a tenant has of each kind, deleted softly or not, so that a list that says how many there are need
-- not count them.
CREATE TABLE memory_counts (
    tenant INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, deleted)
) STRICT, WITHOUT ROWID;
INSERT INTO memory_counts SELECT tenant, kind, deleted, count(*) FROM memories GROUP BY tenant, kind, deleted;
CREATE TRIGGER memories_come AFTER INSERT ON memories BEGIN
    INSERT INTO memory_counts VALUES (new.tenant, new.kind, new.deleted, 1)
        ON CONFLICT DO UPDATE SET memories = memories + 1;
END;
CREATE TRIGGER memories_go AFTER DELETE ON memories BEGIN
    UPDATE memory_counts SET memories = memories - 1
        WHERE tenant = old.tenant AND kind = old.kind AND deleted = old.deleted;
END;
CREATE TRIGGER memories_change AFTER UPDATE OF tenant, kind, deleted ON memories
    WHEN (old.tenant, old.kind, old.deleted) <> (new.tenant, new.kind, new.deleted) BEGIN
    UPDATE memory_counts SET memories = memories - 1
        WHERE tenant = old.tenant AND kind = old.kind AND deleted = old.deleted;
    INSERT INTO memory_counts VALUES (new.tenant, new.kind, new.deleted, 1)
        ON CONFLICT DO UPDATE SET memories = memories + 1;
END;
