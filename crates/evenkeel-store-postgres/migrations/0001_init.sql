-- Times are microseconds since 1970, UTC. Columns that firing writes stand in no index, so that
-- an update stays on its page (HOT); see ARCHITECTURE.md for what each table is for.

CREATE TABLE tenant (
    tenant_no   int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    job_count   int8 NOT NULL DEFAULT 0
);

CREATE TABLE setting (
    key         text PRIMARY KEY,
    value       text NOT NULL
);

-- What people said. Firing reads `definition` once, when it loads the job, and nothing else.
CREATE TABLE job (
    job_no      int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          uuid NOT NULL UNIQUE,
    tenant_no   int4 NOT NULL REFERENCES tenant,
    standing    int2 NOT NULL DEFAULT 0,
    name        text,
    configuration text NOT NULL DEFAULT '',
    source_id   text,
    about       text NOT NULL,
    definition  text NOT NULL,
    created_at  int8 NOT NULL,
    updated_at  int8 NOT NULL
);
-- standing 3 is deleted: the name is free again.
CREATE UNIQUE INDEX job_name ON job (tenant_no, name, configuration) WHERE standing <> 3;
CREATE INDEX job_tenant ON job (tenant_no, job_no) WHERE standing <> 3;
CREATE INDEX job_source ON job (tenant_no, source_id) WHERE standing <> 3 AND source_id IS NOT NULL;

-- Narrow and hot: fire and finish each write it once. What they write stands together at the end,
-- so that the log holds only that part of the row.
CREATE TABLE job_state (
    job_no      int8 PRIMARY KEY,
    tenant_no   int4 NOT NULL,
    generation  int4 NOT NULL DEFAULT 1,
    shard       int2 NOT NULL,
    active      bool NOT NULL DEFAULT true,
    -- here as well as in job.standing, so that a finish sees it on the row that it locks
    deleted     bool NOT NULL DEFAULT false,
    slot        int4,
    placed_at   int8,
    next_at     int8,
    last_fired_at int8,
    head_at     int8,
    head_sequence int4,
    live        int4 NOT NULL DEFAULT 0,
    last_status int2,
    failures    int4 NOT NULL DEFAULT 0,
    executions  int8 NOT NULL DEFAULT 0,
    last_start_at int8,
    last_end_at int8,
    last_good_start_at int8,
    last_good_end_at int8,
    average_us  int8,
    variance    float8 NOT NULL DEFAULT 0,
    -- scheduled times of the newest good and newest failed attempt: retention keeps those two
    good_at     int8,
    failed_at   int8
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- Loads the near future. `slot` is next_at in quarters of an hour, so a short interval seldom
-- moves in it.
CREATE INDEX job_state_slot ON job_state (shard, slot) WHERE slot IS NOT NULL;

-- Jobs that their scheduler must load anew; it deletes them as it does.
CREATE TABLE changed_job (
    shard       int2 NOT NULL,
    job_no      int8 NOT NULL,
    PRIMARY KEY (shard, job_no)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Retries and triggers that wait for their time.
CREATE TABLE wake (
    shard       int2 NOT NULL,
    due         int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    tenant_no   int4 NOT NULL,
    PRIMARY KEY (shard, due, scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX wake_job ON wake (job_no, scheduled_at, sequence, attempt);

-- Attempts that may be claimed. A row leaves when it is; this is also the outbox that a relay reads.
CREATE TABLE ready (
    pool        text NOT NULL,
    lane        int2 NOT NULL,
    priority    int2 NOT NULL,
    should_start_by int8 NOT NULL,
    ready_at    int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    tenant_no   int4 NOT NULL,
    fence       int4 NOT NULL DEFAULT 0,
    crashes     int2 NOT NULL DEFAULT 0,
    prev_at     int8,
    prev_sequence int4,
    dedup_key   text,
    concurrency_key text,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ready_order ON ready (pool, lane, priority DESC, should_start_by, ready_at, job_no);
CREATE INDEX ready_job ON ready (job_no);

-- Every attempt that was started, or ended without; and every record of skipped times. The key
-- starts with the time, so that new rows go to the end. No index with `status`: it would cost
-- every finish a new entry in each index.
CREATE TABLE run (
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    tenant_no   int4 NOT NULL,
    status      int2 NOT NULL,
    crashes     int2 NOT NULL DEFAULT 0,
    fence       int4 NOT NULL,
    node_no     int4,
    -- the job's chain before this one; only on attempt 0
    prev_at     int8,
    prev_sequence int4,
    number      int8,
    started_at  int8,
    finished_at int8,
    skipped_to  int8,
    skipped_count int8,
    skip_reason int2,
    items_crawled int8,
    items_indexed int8,
    cpu_us      int8,
    memory_kb   int8,
    error       text,
    output      text,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0.2);

-- What a running attempt has saved for the next one of its chain.
CREATE TABLE checkpoint (
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    saved_at    int8 NOT NULL,
    data        bytea NOT NULL,
    PRIMARY KEY (scheduled_at, job_no, sequence)
);

CREATE TABLE node (
    node_no     int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity    uuid NOT NULL,
    name        text NOT NULL,
    roles       int2 NOT NULL,
    state       int2 NOT NULL DEFAULT 0,
    joined_at   int8 NOT NULL,
    last_ping_at int8 NOT NULL,
    steal_start_at int8,
    -- no attempt of this node that is not in long_run is for an earlier time
    oldest_open int8 NOT NULL,
    -- the earliest time it has fired or claimed since its last ping, which may have been sent
    -- before: the next ping may not raise oldest_open above it
    reached_back_to int8
) WITH (fillfactor = 50);

-- Attempts that have run for more than half a minute: their owner, for people and for whoever
-- takes them over.
CREATE TABLE long_run (
    node_no     int4 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    fence       int4 NOT NULL,
    started_at  int8 NOT NULL,
    last_ping_at int8 NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt)
);

-- Running attempts that somebody wants ended; their node deletes them as it obeys.
CREATE TABLE cancellation (
    node_no     int4 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt)
);
