-- How many runs may go on at once. The text of a key is not kept, only what stands for it; nothing
-- waits under one yet.
ALTER TABLE ready
    DROP COLUMN concurrency_key,
    ADD COLUMN limit_key bytea,
    ADD COLUMN limit_max int4,
    -- What found no place waits in a pool that nobody serves, `~` and the limit in hex, and goes
    -- back home from there. By which limit it was turned away is kept beside it.
    ADD COLUMN home_pool text,
    ADD COLUMN parked_max int4;
CREATE INDEX ready_parked ON ready (pool, parked_max) WHERE home_pool IS NOT NULL;

-- Who started under a limit. A row counts only while its attempt runs: nobody need take it away at
-- the end.
CREATE TABLE place (
    key         bytea NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    PRIMARY KEY (key, scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
