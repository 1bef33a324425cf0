-- What a purge looks for is found by an index: whose an earlier version was, within its tenant; also where the metadata
-- says the person as a text. So are keys that are too old.
ALTER TABLE memory_history ADD COLUMN tenant INTEGER;
DROP INDEX memory_history_by_user;
UPDATE memory_history SET tenant = (SELECT tenant FROM memories WHERE seq = memory_history.seq),
    user_id = CASE WHEN user_id IS NULL AND json_valid(metadata) AND json_type(metadata, '$.userId') = 'text'
        THEN metadata ->> '$.userId' ELSE user_id END;
CREATE INDEX memory_history_by_user ON memory_history (tenant, user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX choices_by_tenant ON choices (tenant, id);
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at_ms);
