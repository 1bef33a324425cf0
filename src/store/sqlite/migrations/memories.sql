-- Each tenant has a number, after which its full-text index is named: `memory_text_N` and, for its terms, `memory_terms_N`.
-- They are made with the tenant, so that no tenant's words count in another's ranking.
CREATE TABLE memory_tenants (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    purges INTEGER NOT NULL DEFAULT 0
) STRICT;
-- What is looked up by stands in columns; all of it is made from the metadata.
CREATE TABLE memories (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL REFERENCES memory_tenants,
    id TEXT NOT NULL,
    kind INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    version INTEGER NOT NULL,
    user_id TEXT,
    agent_id TEXT,
    chat_id TEXT,
    thread_id TEXT,
    position INTEGER,
    importance REAL,
    metadata TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX memories_by_id ON memories (tenant, id);
CREATE INDEX memories_by_time ON memories (tenant, kind, deleted, created_us, id);
CREATE INDEX memories_by_agent ON memories (tenant, agent_id, kind, deleted, created_us, id);
CREATE INDEX memories_by_user ON memories (tenant, user_id, kind, deleted, created_us, id) WHERE user_id IS NOT NULL;
CREATE INDEX memories_by_chat ON memories (tenant, chat_id, kind, deleted, created_us, id) WHERE chat_id IS NOT NULL;
CREATE INDEX memories_by_thread ON memories (tenant, thread_id, kind, deleted, position, id) WHERE thread_id IS NOT NULL;
CREATE UNIQUE INDEX memories_by_position ON memories (tenant, chat_id, thread_id, position)
    WHERE thread_id IS NOT NULL AND deleted = 0;
-- What a scan needs, without the texts. `stamp` rises with every write.
CREATE TABLE memory_vectors (
    seq INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    vector BLOB NOT NULL
) STRICT;
CREATE INDEX memory_vectors_by_stamp ON memory_vectors (stamp);
CREATE TABLE memory_history (
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (seq, version)
) STRICT;
CREATE TABLE memory_links (
    seq INTEGER NOT NULL,
    relation TEXT NOT NULL,
    target TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    PRIMARY KEY (seq, relation, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_links_by_target ON memory_links (tenant, target);
CREATE TABLE memory_keys (
    tenant INTEGER NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
