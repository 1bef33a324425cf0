-- A call whose duration is not known has -1: it belongs to its session, and to no history of durations.
DROP INDEX executions_by_key;
CREATE INDEX executions_by_key ON executions (tool, mode, failed, id, duration_ms);
