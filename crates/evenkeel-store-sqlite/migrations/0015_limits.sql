-- How many runs may go on at once. The text of a key is not kept, only what stands for it; nothing
-- waits under one yet.
ALTER TABLE ready DROP COLUMN concurrency_key;
ALTER TABLE ready ADD COLUMN limit_key BLOB;
ALTER TABLE ready ADD COLUMN limit_max INTEGER;
-- What found no place waits in a pool that nobody serves, `~` and the limit in hex, and goes back
-- home from there. By which limit it was turned away is kept beside it.
ALTER TABLE ready ADD COLUMN home_pool TEXT;
ALTER TABLE ready ADD COLUMN parked_max INTEGER;
CREATE INDEX ready_parked ON ready (pool, parked_max) WHERE home_pool IS NOT NULL;

-- Who started under a limit. A row counts only while its attempt runs: nobody need take it away at
-- the end.
CREATE TABLE place (
    key         BLOB NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    PRIMARY KEY (key, scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;
