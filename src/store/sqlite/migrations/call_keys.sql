-- What was told under a key; empty for keys that were told before.
ALTER TABLE idempotency_keys ADD COLUMN digest TEXT NOT NULL DEFAULT '';
