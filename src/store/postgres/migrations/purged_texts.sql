-- What a purge's memories said, by digests of 16 bytes each, for a week: whoever has not followed it may note it again.
ALTER TABLE almanac.purges ADD COLUMN texts bytea;
