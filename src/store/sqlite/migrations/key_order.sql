-- The last record of each key, so that a start finds the keys that were called last.
ALTER TABLE execution_keys ADD COLUMN last_id INTEGER NOT NULL DEFAULT 0;
UPDATE execution_keys SET last_id = coalesce((
    SELECT id FROM executions AS e
    WHERE e.tool = execution_keys.tool AND e.mode IS nullif(execution_keys.mode, '') AND e.failed = execution_keys.failed
    ORDER BY id DESC LIMIT 1
), 0);
CREATE INDEX execution_keys_by_last ON execution_keys (last_id);
