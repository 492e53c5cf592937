-- What running attempts say of themselves. A row goes with its attempt; one of an older fence is
-- as good as none. Rewritten every few seconds, on its page as long as that has room.
CREATE TABLE note (
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    fence       int4 NOT NULL,
    saved_at    int8 NOT NULL,
    progress    text,
    log         text,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_cost_delay = 0);

-- A checkpoint, too, is now written while its attempt runs.
ALTER TABLE checkpoint SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_cost_delay = 0);

-- What others say to the nodes of running attempts; they delete it as they read.
CREATE TABLE letter (
    letter_no   int8 GENERATED ALWAYS AS IDENTITY,
    node_no     int4 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    fence       int4 NOT NULL,
    word        int2 NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt, fence, word)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
