-- A tenant's memories are written by one transaction at a time: it holds this row, so that numbers and stamps become
-- visible in their order. `last` is the number of the memory that was added last, `stamp` the moment of the last write.
CREATE TABLE almanac.memory_tenants (
    tenant text COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL DEFAULT 0,
    stamp bigint NOT NULL DEFAULT 0
);
-- What is looked up by stands in columns; all of it is made from the metadata, which is kept as the text that was
-- written. `moments` has each moment of it by its path, `words` each term with a position for each time it is said, of
-- weight D in the text and A in the speaker's name.
CREATE TABLE almanac.memories (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    deleted smallint NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    version bigint NOT NULL,
    user_id text COLLATE "C",
    agent_id text COLLATE "C",
    chat_id text COLLATE "C",
    thread_id text COLLATE "C",
    position bigint,
    importance double precision,
    metadata text NOT NULL,
    content text NOT NULL,
    document jsonb NOT NULL,
    moments jsonb NOT NULL,
    word text COLLATE "C" GENERATED ALWAYS AS (
        CASE kind
            WHEN 1 THEN document ->> 'role'
            WHEN 2 THEN document ->> 'processType'
            WHEN 3 THEN document ->> 'source'
            WHEN 4 THEN document ->> 'status'
        END
    ) STORED,
    stamp bigint NOT NULL,
    words tsvector NOT NULL,
    length integer NOT NULL,
    thread bigint,
    vector bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE UNIQUE INDEX ON almanac.memories (tenant, id);
CREATE INDEX ON almanac.memories (tenant, stamp);
CREATE INDEX ON almanac.memories (tenant, kind, deleted, created_us, id);
CREATE INDEX ON almanac.memories (tenant, kind, deleted, updated_us, id);
CREATE INDEX ON almanac.memories (tenant, agent_id, kind, deleted, created_us, id) WHERE agent_id IS NOT NULL;
CREATE INDEX ON almanac.memories (tenant, user_id, kind, deleted, created_us, id) WHERE user_id IS NOT NULL;
CREATE INDEX ON almanac.memories (tenant, chat_id, kind, deleted, created_us, id) WHERE chat_id IS NOT NULL;
CREATE INDEX ON almanac.memories (tenant, thread_id, kind, deleted, position, id) WHERE thread_id IS NOT NULL;
CREATE INDEX ON almanac.memories (tenant, kind, deleted, word, created_us, id) WHERE word IS NOT NULL;
CREATE UNIQUE INDEX memories_by_position ON almanac.memories (tenant, chat_id, thread_id, position)
    WHERE thread_id IS NOT NULL AND deleted = 0;
CREATE INDEX ON almanac.memories USING gin (words);
CREATE TABLE almanac.memory_history (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    version bigint NOT NULL,
    updated_us bigint NOT NULL,
    metadata text NOT NULL,
    content text NOT NULL,
    user_id text COLLATE "C",
    PRIMARY KEY (tenant, seq, version)
);
CREATE INDEX ON almanac.memory_history (tenant, user_id, seq) WHERE user_id IS NOT NULL;
CREATE TABLE almanac.memory_links (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    relation text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq, relation, target)
);
CREATE INDEX ON almanac.memory_links (tenant, target);
CREATE TABLE almanac.memory_keys (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    id text COLLATE "C" NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, key)
);
CREATE INDEX ON almanac.memory_keys (tenant, id);
-- What was purged, by which readers see that it went; nothing of what it said.
CREATE TABLE almanac.memory_gone (
    tenant text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    stamp bigint NOT NULL,
    PRIMARY KEY (tenant, stamp, seq)
);
-- A purge, for daemons that hold something of what it removed.
CREATE TABLE almanac.purges (
    tenant text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL,
    memories bigint NOT NULL,
    sessions text[] NOT NULL,
    has_choices boolean NOT NULL,
    PRIMARY KEY (tenant, stamp)
);
