-- A memory that is purged takes its keys along, and keys that are too old go: neither looks through all of them.
CREATE INDEX memory_keys_by_memory ON memory_keys (tenant, id);
CREATE INDEX memory_keys_by_time ON memory_keys (at_ms);
