-- All times are microseconds since 1970-01-01 UTC, and so are columns that end in `_at`; columns that
-- end in `_us` are microseconds. The tables have the same columns as in the PostgreSQL store, but
-- SQLite stores them differently: a table with a key of several columns is usually WITHOUT ROWID,
-- so that the table is the index of its key. Of the columns that firing writes, only `slot` is
-- indexed.
--
-- A migration never changes once it is released. So this file writes the codes of states and
-- statuses as numbers; statements use the constants of `evenkeel_store::codes`.

CREATE TABLE tenant (
    tenant_no   INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL UNIQUE,
    -- counts of jobs that are not deleted: all jobs, and jobs in WARNING, in ERROR, paused,
    -- cancelled
    job_count   INTEGER NOT NULL DEFAULT 0,
    warnings    INTEGER NOT NULL DEFAULT 0,
    errors      INTEGER NOT NULL DEFAULT 0,
    paused      INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    -- the next numbers for new jobs and targets; registering a job writes this row anyway
    next_job    INTEGER NOT NULL DEFAULT 1,
    next_target INTEGER NOT NULL DEFAULT 1,
    targets     INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE setting (
    key         TEXT PRIMARY KEY,
    value       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The part of a job that users define. AUTOINCREMENT prevents the reuse of `job_no`, because
-- attempts refer to it.
CREATE TABLE job (
    job_no      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB NOT NULL UNIQUE,
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    -- 0 active, 1 paused, 2 cancelled, 3 deleted
    state       INTEGER NOT NULL DEFAULT 0,
    name        TEXT,
    configuration TEXT NOT NULL DEFAULT '',
    source_id   TEXT,
    about       TEXT NOT NULL,
    definition  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    -- copies from the definition, which job lists filter by
    executor    TEXT,
    lane        INTEGER NOT NULL DEFAULT 1,
    -- the number of the job within the tenant, counted from 1, which users may use instead of the
    -- id
    number      INTEGER NOT NULL DEFAULT 0,
    target_no   INTEGER,
    -- when the job got this target, or NULL if it had the target from the start. Successes before
    -- this time belong to the previous target of the job.
    target_since INTEGER,
    -- why the job is paused, if the pause gave a reason
    note        TEXT
) STRICT;
-- The name of a deleted job can be used again.
CREATE UNIQUE INDEX job_name ON job (tenant_no, name, configuration) WHERE state <> 3;
CREATE UNIQUE INDEX job_number ON job (tenant_no, number);
CREATE INDEX job_tenant ON job (tenant_no, job_no) WHERE state <> 3;
CREATE INDEX job_source ON job (tenant_no, source_id, job_no)
    WHERE state <> 3 AND source_id IS NOT NULL;
CREATE INDEX job_updated ON job (tenant_no, updated_at, job_no) WHERE state <> 3;
CREATE INDEX job_stopped ON job (tenant_no, state, job_no) WHERE state IN (1, 2);
CREATE INDEX job_target ON job (tenant_no, target_no, job_no) WHERE target_no IS NOT NULL;

-- Strings, numbers and booleans at the top level of a job's metadata, which job lists filter by.
CREATE TABLE job_label (
    tenant_no   INTEGER NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL,
    job_no      INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, key, value, job_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_label_job ON job_label (job_no, key, value);

-- The part of a job that the scheduler and the workers write. Firing and finishing each update this
-- row once, so it is kept small.
CREATE TABLE job_state (
    job_no      INTEGER PRIMARY KEY,
    tenant_no   INTEGER NOT NULL,
    generation  INTEGER NOT NULL DEFAULT 1,
    shard       INTEGER NOT NULL,
    -- 1 unless the job is paused, cancelled or deleted
    active      INTEGER NOT NULL DEFAULT 1,
    -- next_at in units of 15 minutes
    slot        INTEGER,
    placed_at   INTEGER,
    next_at     INTEGER,
    last_fired_at INTEGER,
    -- the newest run of the job
    head_at     INTEGER,
    head_sequence INTEGER,
    -- number of runs that have not finished
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
    -- scheduled times of the newest successful and the newest failed attempt, which retention keeps
    succeeded_at INTEGER,
    failed_at   INTEGER,
    -- number of scheduled runs that were started
    fired       INTEGER NOT NULL DEFAULT 0,
    -- 1 if the next run time depends on when the previous run finishes
    follows_end INTEGER NOT NULL DEFAULT 0,
    -- 1 if job_condition has a row for the job; finishing reads it here
    has_condition INTEGER NOT NULL DEFAULT 0,
    -- attempts that succeeded, and attempts that failed or timed out
    succeeded_runs INTEGER NOT NULL DEFAULT 0,
    failed_runs INTEGER NOT NULL DEFAULT 0,
    -- Runs scheduled up to this time are not continued: a failed attempt is not retried, and an
    -- attempt that lost its worker is cancelled. A pause sets this to the time of the pause, so
    -- that a run triggered later is not affected. For a cancelled or deleted job it is the highest
    -- integer.
    stopped_at  INTEGER,
    -- the key of the load profile under which the job is counted, or 0 if it is not counted
    load_profile INTEGER NOT NULL DEFAULT 0,
    cost_us     INTEGER NOT NULL DEFAULT 0,
    -- 1 if the user set the cost, which is then not adjusted to the duration of runs
    cost_stated INTEGER NOT NULL DEFAULT 0
) STRICT;
-- The scheduler uses this index to load the jobs of the next time slots. Because a slot is 15
-- minutes long, a job with a short interval seldom moves in this index.
CREATE INDEX job_state_slot ON job_state (shard, slot) WHERE slot IS NOT NULL;
-- Active jobs without a next run time, which wait, run, or have ended.
CREATE INDEX job_state_unplaced ON job_state (tenant_no, job_no) WHERE slot IS NULL AND active = 1;

-- Jobs that the scheduler of their shard must load again. The scheduler deletes the rows that it
-- has read.
CREATE TABLE changed_job (
    shard       INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    PRIMARY KEY (shard, job_no)
) STRICT, WITHOUT ROWID;

-- Retries and triggered runs, each with a separate due time.
CREATE TABLE delayed_attempt (
    shard       INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    -- the priority of the run, or NULL if it has the priority of its job
    priority    INTEGER,
    PRIMARY KEY (shard, due, scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX delayed_attempt_job ON delayed_attempt (job_no, scheduled_at, sequence, attempt);

-- The queue: attempts that a worker may claim. Claiming an attempt deletes its row.
CREATE TABLE ready (
    pool        TEXT NOT NULL,
    lane        INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    should_start_by INTEGER NOT NULL,
    -- the earliest time at which the attempt could be claimed; a return to the queue does not
    -- change it
    since       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    fence       INTEGER NOT NULL DEFAULT 0,
    crashes     INTEGER NOT NULL DEFAULT 0,
    prev_at     INTEGER,
    prev_sequence INTEGER,
    -- the claim window, in which the attempt may be claimed
    open_from   INTEGER,
    open_until  INTEGER,
    -- names of nodes that may not claim the attempt, as a JSON array
    forbidden_nodes TEXT,
    -- The order among attempts by waiting time (core's Aging). The value stays the same while the
    -- attempt waits, so no row is rewritten because time passes. Workers use the better of two
    -- positions: by priority and by `rise`.
    rise        INTEGER NOT NULL DEFAULT 0,
    -- 1 if the run has a separate priority, which a change of the job's priority does not affect
    own_priority INTEGER NOT NULL DEFAULT 0,
    -- a hash of the job's concurrency key, and the limit of that key
    limit_key   BLOB,
    limit_max   INTEGER,
    -- The following columns are set while the attempt waits in a limit queue. `pool` is then `~`
    -- and the key of the limit in hex, which no worker serves, and home_pool is the pool to return
    -- to.
    home_pool   TEXT,
    -- the value of the limit that was exceeded
    limited_by_max INTEGER,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX ready_order ON ready (pool, lane, priority DESC, should_start_by, since, job_no);
CREATE INDEX ready_rise ON ready (pool, lane, rise, should_start_by, since, job_no);
CREATE INDEX ready_job ON ready (job_no);
CREATE INDEX ready_closing ON ready (open_until) WHERE open_until IS NOT NULL;
CREATE INDEX ready_limited ON ready (pool, limited_by_max) WHERE home_pool IS NOT NULL;

-- Every attempt that was started or that finished before it started, and every record of skipped
-- runs. The key begins with the scheduled time, so that new rows go to the end and few database
-- pages are written.
CREATE TABLE attempt (
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    crashes     INTEGER NOT NULL DEFAULT 0,
    fence       INTEGER NOT NULL,
    node_no     INTEGER,
    -- the previous run of the job; only set on attempt 0
    prev_at     INTEGER,
    prev_sequence INTEGER,
    -- how many attempts the job had started by then, including this one if it started; retention
    -- compares it with the job's count
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
    -- the priority of the run, which an attempt keeps if it returns to the queue
    priority    INTEGER,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;

-- Checkpoints that attempts saved for the next attempt of their run.
CREATE TABLE checkpoint (
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    saved_at    INTEGER NOT NULL,
    data        BLOB NOT NULL,
    PRIMARY KEY (scheduled_at, job_no, sequence)
) STRICT, WITHOUT ROWID;

-- Progress and log of running attempts. A row is deleted when its attempt finishes; a row with an
-- older fence than the attempt's is ignored. The table has rowids, because logs are long and long
-- rows are slow in a table WITHOUT ROWID.
CREATE TABLE note (
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    saved_at    INTEGER NOT NULL,
    progress    TEXT,
    log         TEXT,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) STRICT;

-- Permits of concurrency limits that running attempts hold. A row counts only while its attempt
-- runs, so finishing an attempt need not delete the row.
CREATE TABLE permit (
    key         BLOB NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    PRIMARY KEY (key, scheduled_at, job_no, sequence, attempt)
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
    -- no attempt that runs on this node has an earlier scheduled time, except attempts in
    -- long_attempt
    low_watermark INTEGER NOT NULL,
    -- the pools that the node serves, as a JSON array
    pools       TEXT NOT NULL DEFAULT '["default"]'
) STRICT;

-- Attempts that have run for more than 30 s, and the nodes that run them. Users see these rows, and
-- a node that takes over from a dead node reads them.
CREATE TABLE long_attempt (
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

-- Running attempts that must be cancelled. The node of an attempt deletes the row when it cancels
-- the attempt.
CREATE TABLE cancellation (
    node_no     INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    -- 1 if a newer run of the job replaces this run; 0 if a user cancelled it
    superseded  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt)
) STRICT, WITHOUT ROWID;

-- Messages to nodes about attempts that they run. A node deletes the messages it has read.
CREATE TABLE node_message (
    message_no  INTEGER PRIMARY KEY,
    node_no     INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    UNIQUE (node_no, scheduled_at, job_no, sequence, attempt, fence, kind)
) STRICT;

-- Jobs whose deadline promise may be broken (by a failed, skipped, late or long run), and their
-- condition; `level` is NULL until it is determined.
CREATE TABLE job_condition (
    job_no      INTEGER PRIMARY KEY,
    tenant_no   INTEGER NOT NULL,
    shard       INTEGER NOT NULL,
    judge_at    INTEGER NOT NULL,
    -- changes with every event of the job; starts at a random number, so that a row that was
    -- deleted and inserted again is not mistaken for the old row
    touched     INTEGER NOT NULL,
    level       INTEGER,
    reason      INTEGER,
    error_at    INTEGER,
    since       INTEGER
) STRICT;
CREATE INDEX job_condition_due ON job_condition (shard, judge_at);
CREATE INDEX job_condition_at_risk ON job_condition (tenant_no, error_at, job_no) WHERE level > 0;
-- Reason 9 means that only a blackout delays the job. Such jobs are counted separately, so that
-- alerts can ignore them.
CREATE INDEX job_condition_held ON job_condition (tenant_no) WHERE reason = 9;

-- Runs that failed after all retries, of jobs that keep dead letters. A dead letter is kept longer
-- than its attempt, so it has a copy of the error.
CREATE TABLE dead_letter (
    job_no       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    sequence     INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    tenant_no    INTEGER NOT NULL,
    died_at      INTEGER NOT NULL,
    reason       INTEGER NOT NULL,
    status       INTEGER NOT NULL,
    error        TEXT,
    -- when the dead letter was redriven, and the run that the redrive started
    redriven_at  INTEGER,
    new_at       INTEGER,
    new_sequence INTEGER
) STRICT;
CREATE UNIQUE INDEX dead_letter_run ON dead_letter (job_no, scheduled_at, sequence);
CREATE INDEX dead_letter_place ON dead_letter (tenant_no, died_at, scheduled_at, job_no, sequence);
CREATE INDEX dead_letter_age ON dead_letter (died_at);

-- How many runs of a job failed in a row, for jobs that pause themselves after repeated failures. A
-- success writes nothing here: succeeded_runs is the job's count of successes at the last failure,
-- and if the count has changed since, the row no longer applies. Jobs with is_due must be paused.
CREATE TABLE failing (
    job_no       INTEGER PRIMARY KEY,
    runs         INTEGER NOT NULL,
    succeeded_runs INTEGER NOT NULL,
    is_due       INTEGER NOT NULL
) STRICT;
CREATE INDEX failing_due ON failing (job_no) WHERE is_due;

-- The job that last took a deduplication key. Whether the job still holds the key is decided when
-- another job requests it, so claiming and finishing write nothing here.
CREATE TABLE dedup_key (
    tenant_no    INTEGER NOT NULL,
    -- 16 bytes of a hash of the executor and the text of the key
    key          BLOB NOT NULL,
    job_no       INTEGER NOT NULL,
    taken_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, key)
) STRICT, WITHOUT ROWID;

-- Targets, the systems that jobs work on, with a number within the tenant. The last success of a
-- target is read from the jobs that have the target; last_success_at holds the last success of jobs
-- that had the target before.
CREATE TABLE target (
    tenant_no   INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    source_id   TEXT,
    name        TEXT,
    url         TEXT,
    generation  INTEGER NOT NULL DEFAULT 1,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    last_success_at INTEGER,
    PRIMARY KEY (tenant_no, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX target_source ON target (tenant_no, source_id) WHERE source_id IS NOT NULL;

-- Totals of attempts per tenant, to which each node adds every few seconds.
CREATE TABLE run_totals (
    tenant_no   INTEGER PRIMARY KEY,
    completed   INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    timed_out   INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    retries     INTEGER NOT NULL DEFAULT 0,
    stolen      INTEGER NOT NULL DEFAULT 0,
    succeeded_us INTEGER NOT NULL DEFAULT 0
) STRICT;
-- When a node last added to the totals, and how many attempts of a tenant ran on the node at that
-- time.
CREATE TABLE run_stats_node (
    node_no     INTEGER PRIMARY KEY,
    reported_at INTEGER NOT NULL
) STRICT;
CREATE TABLE run_stats_running (
    node_no     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    running     INTEGER NOT NULL,
    PRIMARY KEY (node_no, tenant_no)
) STRICT, WITHOUT ROWID;

-- Groups of failures with the same fingerprint, each with its newest failure.
CREATE TABLE failure (
    tenant_no   INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    count       INTEGER NOT NULL,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    error       TEXT NOT NULL,
    PRIMARY KEY (tenant_no, fingerprint)
) STRICT;
CREATE INDEX failure_newest ON failure (tenant_no, last_at, fingerprint);
CREATE INDEX failure_oldest ON failure (last_at);

-- How many jobs of a tenant have a load profile, and the sum of the costs of one run of each job. A
-- load profile without jobs has no row.
CREATE TABLE load_profile (
    tenant_no   INTEGER NOT NULL,
    key         INTEGER NOT NULL,
    profile     TEXT NOT NULL,
    jobs        INTEGER NOT NULL,
    cost_us     INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE rebalance (
    rebalance_no INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB NOT NULL UNIQUE,
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    -- 0 planned, 1 running, 2 done, 3 stopped
    state       INTEGER NOT NULL,
    undoes      BLOB,
    undone_by   BLOB,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    touched_at  INTEGER,
    ended_at    INTEGER,
    parts       INTEGER NOT NULL,
    parts_done  INTEGER NOT NULL,
    planned     INTEGER NOT NULL,
    moved       INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    skipped     INTEGER NOT NULL,
    summary     TEXT NOT NULL
) STRICT;
CREATE INDEX rebalance_newest ON rebalance (tenant_no, created_at, id) WHERE state <> 0;
CREATE INDEX rebalance_running ON rebalance (tenant_no) WHERE state = 1;
CREATE INDEX rebalance_oldest ON rebalance (created_at) WHERE state <> 1;

-- The moves of a rebalance in batches. `made` has one byte per move: 1 if the job was moved.
CREATE TABLE rebalance_part (
    rebalance_no INTEGER NOT NULL,
    part        INTEGER NOT NULL,
    moves       BLOB NOT NULL,
    made        BLOB
) STRICT;
CREATE UNIQUE INDEX rebalance_part_place ON rebalance_part (rebalance_no, part);

-- Hourly scores of how evenly the runs of a tenant were spread over time.
CREATE TABLE balance_score (
    tenant_no   INTEGER NOT NULL,
    hour        INTEGER NOT NULL,
    score       REAL NOT NULL,
    next_score  REAL NOT NULL,
    cost_score  REAL NOT NULL,
    peak        REAL NOT NULL,
    mean        REAL NOT NULL,
    jobs        INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX balance_score_oldest ON balance_score (hour);

-- API requests with an idempotency key, and their responses; `status` is NULL until the request
-- ends.
CREATE TABLE request (
    tenant_no   INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    begun_at    INTEGER NOT NULL,
    given_up_at INTEGER NOT NULL,
    status      INTEGER,
    headers     TEXT,
    body        BLOB
) STRICT;
CREATE UNIQUE INDEX request_key ON request (tenant_no, key);
CREATE INDEX request_age ON request (begun_at);

-- API keys, of which only a hash is stored. The name of a revoked key can be used again.
CREATE TABLE api_key (
    id          BLOB PRIMARY KEY,
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    name        TEXT NOT NULL,
    role        INTEGER NOT NULL,
    hash        BLOB NOT NULL UNIQUE,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX api_key_name ON api_key (tenant_no, name) WHERE revoked_at IS NULL;
CREATE INDEX api_key_tenant ON api_key (tenant_no, id);

-- The audit log of actions and refused requests. Tenant 0 means that the client was not identified.
CREATE TABLE audit (
    no          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    subject     TEXT NOT NULL,
    role        INTEGER,
    action      TEXT NOT NULL,
    target      TEXT,
    status      INTEGER NOT NULL,
    denied      INTEGER NOT NULL,
    detail      TEXT,
    remote      TEXT,
    request_id  TEXT NOT NULL
) STRICT;
CREATE INDEX audit_place ON audit (tenant_no, at, no);

-- Named secrets. Values are encrypted with a key that is not in the database. The tenant and the
-- name are authenticated with the value, so a value copied to another row does not decrypt.
CREATE TABLE secret (
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    key_id      TEXT NOT NULL,
    nonce       BLOB NOT NULL,
    ciphertext  BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    updated_at  INTEGER NOT NULL,
    updated_by  TEXT NOT NULL,
    PRIMARY KEY (tenant_no, name)
) STRICT;

-- Pages that crawls save. `page` is written whenever a page is seen, but `page_text` only when its
-- content has changed, so a second crawl of an unchanged site writes only the small rows.
CREATE TABLE page (
    page_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB NOT NULL UNIQUE,
    job_no      INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    url         TEXT NOT NULL,
    title       TEXT,
    status      INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    depth       INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    bytes       INTEGER NOT NULL,
    first_seen_at INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    etag        TEXT,
    last_modified TEXT
) STRICT;
CREATE INDEX page_job ON page (job_no, page_no);
CREATE INDEX page_tenant ON page (tenant_no, page_no);

CREATE TABLE page_text (
    page_no     INTEGER PRIMARY KEY,
    text        TEXT NOT NULL,
    links       TEXT NOT NULL,
    metadata    TEXT NOT NULL,
    fields      TEXT NOT NULL
) STRICT;

-- The full-text index of pages. The program folds the words and puts spaces between them, so the
-- tokenizer `ascii` only splits at spaces. The index stores no second copy of the text (content =
-- ''), and a deleted entry is only marked, so that the writer need not read the old text again.
-- Statements fill and empty the index, because a trigger could not fold words.
--
-- `home` holds the tenant and the job (`t1 j7`), so that a search skips pages of other tenants and jobs
-- within the index.
CREATE VIRTUAL TABLE page_words USING fts5 (
    title, text, home, tokenize = 'ascii', content = '', contentless_delete = 1
);
-- Marked entries disappear with the next ordinary merge of their segment. The default, which makes
-- extra merges for marked entries, blocked the writer for seconds when the pages of a job were
-- deleted.
INSERT INTO page_words (page_words, rank) VALUES ('deletemerge', 0);

-- How much space the pages of a job use. A job without pages has no row.
CREATE TABLE page_usage (
    job_no      INTEGER PRIMARY KEY,
    bytes       INTEGER NOT NULL DEFAULT 0,
    pages       INTEGER NOT NULL DEFAULT 0
) STRICT;
