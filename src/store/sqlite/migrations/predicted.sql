-- What the model said of a call just before it learnt it: P05, P25, P50, P75 and P95 in ms, four bytes each, lowest first. Missing
-- of calls that were recorded before, and of those between whose record and the next one the daemon was killed.
ALTER TABLE executions ADD COLUMN predicted BLOB;
