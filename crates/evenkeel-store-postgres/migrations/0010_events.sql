-- What happens, for those who listen. Not logged: after a crash of the database those who listened
-- are told that something may be missing, and nothing else depends on it.
CREATE UNLOGGED TABLE event (
    -- Later ones have larger numbers, and they become visible in that order. Microseconds of the
    -- clock as long as it goes forward, so that numbers go up although a crash empties the table.
    no            int8 PRIMARY KEY,
    -- NULL: here some are missing, and so is all that follows.
    kind          int2,
    tenant_no     int4,
    job_id        uuid,
    -- The key of an attempt, if it is about one.
    scheduled_at  int8,
    job_no        int8,
    sequence      int4,
    attempt       int2,
    at            int8,
    data          text
) WITH (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);

-- On which nodes somebody listens, and until when at least.
CREATE UNLOGGED TABLE event_listener (
    node   text PRIMARY KEY,
    until  int8 NOT NULL
) WITH (fillfactor = 50);
