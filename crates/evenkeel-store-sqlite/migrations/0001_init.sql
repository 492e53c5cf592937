-- Times are microseconds since 1970, UTC. The tables are those of the PostgreSQL store; what
-- differs is how they are kept: a table whose key is several columns is its own index (WITHOUT
-- ROWID), and columns that firing writes stand in no index but `slot`.

CREATE TABLE tenant (
    tenant_no   INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL UNIQUE,
    job_count   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE setting (
    key         TEXT PRIMARY KEY,
    value       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What people said. AUTOINCREMENT: a number must never come back, for runs are known by it.
CREATE TABLE job (
    job_no      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB NOT NULL UNIQUE,
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    standing    INTEGER NOT NULL DEFAULT 0,
    name        TEXT,
    configuration TEXT NOT NULL DEFAULT '',
    source_id   TEXT,
    about       TEXT NOT NULL,
    definition  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;
-- standing 3 is deleted: the name is free again.
CREATE UNIQUE INDEX job_name ON job (tenant_no, name, configuration) WHERE standing <> 3;
CREATE INDEX job_tenant ON job (tenant_no, job_no) WHERE standing <> 3;
CREATE INDEX job_source ON job (tenant_no, source_id) WHERE standing <> 3 AND source_id IS NOT NULL;

-- Narrow and hot: fire and finish each write it once.
CREATE TABLE job_state (
    job_no      INTEGER PRIMARY KEY,
    tenant_no   INTEGER NOT NULL,
    generation  INTEGER NOT NULL DEFAULT 1,
    shard       INTEGER NOT NULL,
    active      INTEGER NOT NULL DEFAULT 1,
    slot        INTEGER,
    placed_at   INTEGER,
    next_at     INTEGER,
    last_fired_at INTEGER,
    head_at     INTEGER,
    head_sequence INTEGER,
    live        INTEGER NOT NULL DEFAULT 0,
    last_status INTEGER,
    failures    INTEGER NOT NULL DEFAULT 0,
    executions  INTEGER NOT NULL DEFAULT 0,
    last_start_at INTEGER,
    last_end_at INTEGER,
    last_good_start_at INTEGER,
    last_good_end_at INTEGER,
    average_us  INTEGER,
    variance    REAL NOT NULL DEFAULT 0,
    -- scheduled times of the newest good and newest failed attempt: retention keeps those two
    good_at     INTEGER,
    failed_at   INTEGER
) STRICT;
-- Loads the near future. `slot` is next_at in quarters of an hour, so a short interval seldom
-- moves in it.
CREATE INDEX job_state_slot ON job_state (shard, slot) WHERE slot IS NOT NULL;

-- Jobs that their scheduler must load anew; it deletes them as it does.
CREATE TABLE changed_job (
    shard       INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    PRIMARY KEY (shard, job_no)
) STRICT, WITHOUT ROWID;

-- Retries and triggers that wait for their time.
CREATE TABLE wake (
    shard       INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    PRIMARY KEY (shard, due, scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX wake_job ON wake (job_no, scheduled_at, sequence, attempt);

-- Attempts that may be claimed. A row leaves when it is; this is also the outbox that a relay reads.
CREATE TABLE ready (
    pool        TEXT NOT NULL,
    lane        INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    should_start_by INTEGER NOT NULL,
    ready_at    INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    fence       INTEGER NOT NULL DEFAULT 0,
    crashes     INTEGER NOT NULL DEFAULT 0,
    prev_at     INTEGER,
    prev_sequence INTEGER,
    dedup_key   TEXT,
    concurrency_key TEXT,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX ready_order ON ready (pool, lane, priority DESC, should_start_by, ready_at, job_no);
CREATE INDEX ready_job ON ready (job_no);

-- Every attempt that was started, or ended without; and every record of skipped times. The key
-- starts with the time, so that new rows go to the end and few pages are touched.
CREATE TABLE run (
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    crashes     INTEGER NOT NULL DEFAULT 0,
    fence       INTEGER NOT NULL,
    node_no     INTEGER,
    -- the job's chain before this one; only on attempt 0
    prev_at     INTEGER,
    prev_sequence INTEGER,
    -- the attempts the job had had by then, this one included if it started: retention's age
    number      INTEGER,
    started_at  INTEGER,
    finished_at INTEGER,
    skipped_to  INTEGER,
    skipped_count INTEGER,
    skip_reason INTEGER,
    items_crawled INTEGER,
    items_indexed INTEGER,
    cpu_us      INTEGER,
    memory_kb   INTEGER,
    error       TEXT,
    output      TEXT,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;

-- What a running attempt has saved for the next one of its chain.
CREATE TABLE checkpoint (
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    saved_at    INTEGER NOT NULL,
    data        BLOB NOT NULL,
    PRIMARY KEY (scheduled_at, job_no, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE node (
    node_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    identity    BLOB NOT NULL,
    name        TEXT NOT NULL,
    roles       INTEGER NOT NULL,
    state       INTEGER NOT NULL DEFAULT 0,
    joined_at   INTEGER NOT NULL,
    last_ping_at INTEGER NOT NULL,
    steal_start_at INTEGER,
    -- no attempt of this node that is not in long_run is for an earlier time
    oldest_open INTEGER NOT NULL
) STRICT;

-- Attempts that have run for more than half a minute: their owner, for people and for whoever
-- takes them over.
CREATE TABLE long_run (
    node_no     INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    last_ping_at INTEGER NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;

-- Running attempts that somebody wants ended; their node deletes them as it obeys.
CREATE TABLE cancellation (
    node_no     INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;
