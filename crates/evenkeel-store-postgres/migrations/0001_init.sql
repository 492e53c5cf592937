-- Times are microseconds since 1970, UTC. Statuses and other codes are those of
-- evenkeel_store::codes; a migration writes them as numbers, because it must never change.
--
-- Firing and finishing update rows of job_state and attempt in place (HOT updates), because the
-- columns they write are in no index, except job_state.slot.

CREATE TABLE tenant (
    tenant_no   int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    -- Counts of jobs: all jobs that are not deleted, and jobs in WARNING, in ERROR, paused,
    -- cancelled.
    job_count   int8 NOT NULL DEFAULT 0,
    warnings    int8 NOT NULL DEFAULT 0,
    errors      int8 NOT NULL DEFAULT 0,
    paused      int8 NOT NULL DEFAULT 0,
    cancelled   int8 NOT NULL DEFAULT 0
);

CREATE TABLE setting (
    key         text PRIMARY KEY,
    value       text NOT NULL
);

-- The part of a job that clients define. The scheduler reads `definition` once, when it loads the
-- job. Names, sources and labels are ordered by code point (COLLATE "C"), whatever the language of
-- the database. Their indexes then also find prefixes, and all stores return the same order.
--
-- There is no foreign key to tenant, because the tenant number was looked up just before, and
-- tenants are never deleted. The check made a batch of new jobs an eighth slower, and made every
-- registration lock the tenant's row.
CREATE TABLE job (
    job_no      int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          uuid NOT NULL UNIQUE,
    tenant_no   int4 NOT NULL,
    state       int2 NOT NULL DEFAULT 0,
    name        text COLLATE "C",
    configuration text COLLATE "C" NOT NULL DEFAULT '',
    source_id   text COLLATE "C",
    about       text NOT NULL,
    definition  text NOT NULL,
    created_at  int8 NOT NULL,
    updated_at  int8 NOT NULL,
    executor    text,
    lane        int2 NOT NULL DEFAULT 1,
    -- the number of the job within the tenant, counted from 1, which clients may use instead of the
    -- id
    number      int8 NOT NULL,
    target_no   int8,
    -- when the job got this target, or NULL if it had the target from the start. Runs that finished
    -- before this time do not count for the target.
    target_since int8,
    -- why the job is paused, if the client gave a reason
    note        text,
    -- key in dedup_key, or NULL if the job has no deduplication key
    dedup_key   uuid
);
-- State 3 means deleted, and the name of a deleted job can be used again.
CREATE UNIQUE INDEX job_name ON job (tenant_no, name, configuration) WHERE state <> 3;
-- A scan over all jobs of a tenant reads only this index and not the wide rows.
CREATE INDEX job_tenant ON job (tenant_no, job_no) INCLUDE (id, created_at) WHERE state <> 3;
CREATE INDEX job_source ON job (tenant_no, source_id, job_no)
    WHERE state <> 3 AND source_id IS NOT NULL;
CREATE INDEX job_updated ON job (tenant_no, updated_at, job_no) WHERE state <> 3;
CREATE INDEX job_stopped ON job (tenant_no, state, job_no) WHERE state IN (1, 2);
CREATE UNIQUE INDEX job_number ON job (tenant_no, number);
CREATE INDEX job_target ON job (tenant_no, target_no, job_no) WHERE target_no IS NOT NULL;

-- Texts, numbers and booleans at the top level of a job's metadata.
CREATE TABLE job_label (
    tenant_no   int4 NOT NULL,
    key         text COLLATE "C" NOT NULL,
    value       text COLLATE "C" NOT NULL,
    job_no      int8 NOT NULL,
    PRIMARY KEY (tenant_no, key, value, job_no)
);
CREATE INDEX job_label_job ON job_label (job_no);

-- The next numbers for new jobs and targets of a tenant. The numbers are not in the tenant's row,
-- because commands and evaluations lock that row last. A registration takes its numbers first and
-- may then wait for a name that a command holds.
CREATE TABLE numbering (
    tenant_no   int4 PRIMARY KEY,
    next_job    int8 NOT NULL DEFAULT 1,
    next_target int8 NOT NULL DEFAULT 1,
    targets     int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Targets, the data sources or websites that jobs work on, with a number within the tenant. The
-- last success of a target is read from the jobs that name the target, so finishing a run writes
-- nothing here. When a job stops naming the target, its last success is saved in `last_success_at`.
CREATE TABLE target (
    tenant_no   int4 NOT NULL,
    number      int8 NOT NULL,
    source_id   text,
    name        text,
    url         text,
    generation  int4 NOT NULL DEFAULT 1,
    created_at  int8 NOT NULL,
    updated_at  int8 NOT NULL,
    last_success_at int8,
    PRIMARY KEY (tenant_no, number)
);
CREATE UNIQUE INDEX target_source ON target (tenant_no, source_id) WHERE source_id IS NOT NULL;

-- The state of a job, a narrow row that each firing and each finished attempt writes once.
--
-- The order of the columns matters, because the write-ahead log holds a changed row from the first
-- changed byte to the last. Firing writes the columns from `next_at` to `live`; finishing writes
-- the columns from `live` to `failed_runs`.
CREATE TABLE job_state (
    job_no      int8 PRIMARY KEY,
    tenant_no   int4 NOT NULL,
    generation  int4 NOT NULL DEFAULT 1,
    shard       int2 NOT NULL,
    active      bool NOT NULL DEFAULT true,
    -- next_at in units of 15 minutes
    slot        int4,
    placed_at   int8,
    next_at     int8,
    last_fired_at int8,
    -- the newest run
    head_at     int8,
    executions  int8 NOT NULL DEFAULT 0,
    -- number of scheduled runs that were fired
    fired       int8 NOT NULL DEFAULT 0,
    head_sequence int4,
    -- number of active runs
    live        int4 NOT NULL DEFAULT 0,
    last_status int2,
    -- true if the next run time depends on when a run finishes
    follows_end bool NOT NULL DEFAULT false,
    -- true if the job has a row in job_condition
    has_condition bool NOT NULL DEFAULT false,
    failures    int4 NOT NULL DEFAULT 0,
    last_start_at int8,
    last_end_at int8,
    last_good_start_at int8,
    last_good_end_at int8,
    average_us  int8,
    variance    float8 NOT NULL DEFAULT 0,
    -- scheduled times of the newest successful and the newest failed attempt, which pruning keeps
    succeeded_at int8,
    failed_at   int8,
    succeeded_runs int4 NOT NULL DEFAULT 0,
    failed_runs int4 NOT NULL DEFAULT 0,
    -- Runs scheduled up to this time are not continued: a failed attempt is not retried, and an
    -- attempt that lost its worker is cancelled. A pause sets the current time, so that a run
    -- triggered later still starts; cancelling or deleting the job sets the highest number.
    -- Finishing an attempt reads this column from the row that it locks anyway.
    stopped_at  int8,
    -- key in load_profile, or 0 if the job has no load profile
    load_profile int8 NOT NULL DEFAULT 0,
    cost_us     int8 NOT NULL DEFAULT 0,
    cost_stated bool NOT NULL DEFAULT false,
    -- true if the job is counted in load_profile, because it has a next run time and a load profile
    counted     bool NOT NULL DEFAULT false
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- The scheduler uses this index to find the jobs that are due soon. A job with a short interval
-- seldom changes its slot.
CREATE INDEX job_state_slot ON job_state (shard, slot) WHERE slot IS NOT NULL;
-- Active jobs without a next run time, which have an active run or have ended.
CREATE INDEX job_state_unplaced ON job_state (tenant_no, job_no) WHERE slot IS NULL AND active;

-- Jobs that their scheduler must load again; the scheduler deletes the row when it has loaded the
-- job.
CREATE TABLE changed_job (
    shard       int2 NOT NULL,
    job_no      int8 NOT NULL,
    PRIMARY KEY (shard, job_no)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Retries and triggered runs, each with a separate due time.
CREATE TABLE delayed_attempt (
    shard       int2 NOT NULL,
    due         int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    tenant_no   int4 NOT NULL,
    -- the priority of the run, or NULL if it has the priority of its job
    priority    int2,
    PRIMARY KEY (shard, due, scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX delayed_attempt_job ON delayed_attempt (job_no, scheduled_at, sequence, attempt);

-- The queue: attempts that may be claimed. Claiming an attempt deletes its row.
CREATE TABLE ready (
    pool        text NOT NULL,
    lane        int2 NOT NULL,
    priority    int2 NOT NULL,
    should_start_by int8 NOT NULL,
    -- the earliest time at which the attempt could be claimed
    since       int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    tenant_no   int4 NOT NULL,
    fence       int4 NOT NULL DEFAULT 0,
    crashes     int2 NOT NULL DEFAULT 0,
    prev_at     int8,
    prev_sequence int4,
    -- the attempt may be claimed between these times, and not by these nodes (a list of names)
    open_from   int8,
    open_until  int8,
    forbidden_nodes jsonb,
    -- Position of the attempt in the order by waiting time. The position never changes while the
    -- attempt waits, so no row is rewritten as time passes. Of the positions by priority and by
    -- `rise`, the better one counts (core's Aging).
    rise        int8 NOT NULL,
    -- true if the run has a separate priority, which a change of the job's priority does not affect
    own_priority bool NOT NULL DEFAULT false,
    limit_key   bytea,
    limit_max   int4,
    -- An attempt over a concurrency limit waits in a pool that no node serves, named `~` plus the
    -- limit key in hex. `home_pool` is the pool to which the attempt returns, `limited_by_max` the
    -- value of the limit.
    home_pool   text,
    limited_by_max int4,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ready_order ON ready (pool, lane, priority DESC, should_start_by, since, job_no);
CREATE INDEX ready_rise ON ready (pool, lane, rise, should_start_by, since, job_no);
CREATE INDEX ready_job ON ready (job_no);
CREATE INDEX ready_open_until ON ready (open_until) WHERE open_until IS NOT NULL;
CREATE INDEX ready_limited ON ready (pool, limited_by_max) WHERE home_pool IS NOT NULL;

-- The history holds attempts that were claimed or that ended without being claimed, and records of
-- skipped runs. The key starts with the scheduled time, so new rows go to the end. No index
-- includes `status`, because every finished attempt would then write a new entry into each index.
CREATE TABLE attempt (
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    tenant_no   int4 NOT NULL,
    status      int2 NOT NULL,
    crashes     int2 NOT NULL DEFAULT 0,
    fence       int4 NOT NULL,
    node_no     int4,
    -- the previous run of the job; only set on attempt 0
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
    -- true if the run was cancelled, so that it is not retried, whatever the outcome of this
    -- attempt
    cancel_requested bool NOT NULL DEFAULT false,
    -- true if the run is cancelled because a newer run of the job replaces it. The column is here
    -- and not in `cancellation`, because a transaction that waits for this row sees the column once
    -- it gets the row.
    superseded  bool NOT NULL DEFAULT false,
    -- the priority of the run, which a requeued attempt keeps, or NULL if it has the priority of
    -- its job
    priority    int2,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0.2);

-- Checkpoints that running attempts have saved for the next attempt of their run.
CREATE TABLE checkpoint (
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    saved_at    int8 NOT NULL,
    data        bytea NOT NULL,
    PRIMARY KEY (scheduled_at, job_no, sequence)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_cost_delay = 0);

-- Progress and log of running attempts, rewritten every few seconds. A row is deleted when its
-- attempt finishes; a row with an older fence is ignored.
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

CREATE TABLE node (
    node_no     int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity    uuid NOT NULL,
    name        text NOT NULL,
    roles       int2 NOT NULL,
    state       int2 NOT NULL DEFAULT 0,
    joined_at   int8 NOT NULL,
    last_ping_at int8 NOT NULL,
    steal_start_at int8,
    -- all attempts of this node with an earlier scheduled time are in long_attempt
    low_watermark int8 NOT NULL,
    -- The earliest scheduled time that the node has fired or claimed since its last ping. The next
    -- ping may have been sent before that, so it does not raise low_watermark above this time.
    reached_back_to int8,
    -- the pools that the node serves, a JSON list
    pools       text NOT NULL DEFAULT '["default"]'
) WITH (fillfactor = 50);

-- Attempts that have run for more than 30 seconds.
CREATE TABLE long_attempt (
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

-- Running attempts that must be cancelled; the node of an attempt deletes the row when it has
-- stopped the attempt.
CREATE TABLE cancellation (
    node_no     int4 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt)
);

-- Messages to the nodes that run attempts; a node deletes a message when it reads it.
CREATE TABLE node_message (
    message_no  int8 GENERATED ALWAYS AS IDENTITY,
    node_no     int4 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    fence       int4 NOT NULL,
    kind        int2 NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt, fence, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Permits of attempts that started under a concurrency limit. A row counts only while its attempt
-- runs, so finishing an attempt need not delete the row.
CREATE TABLE permit (
    key         bytea NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    PRIMARY KEY (key, scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The job that last took a deduplication key. Whether that job still holds the key is decided when
-- another job requests it, so claiming and finishing write nothing here. The holder is stored by
-- its id, which exists before the job is stored, because inserting the key also locks it.
CREATE TABLE dedup_key (
    tenant_no    int4 NOT NULL,
    -- 16 bytes of a hash of the executor and the text of the key
    key          uuid NOT NULL,
    job_id       uuid NOT NULL,
    taken_at     int8 NOT NULL,
    PRIMARY KEY (tenant_no, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The condition of each job whose condition may not be OK. A transaction that changes a row has
-- locked the job's row in job_state. Each change sets a new value of `touched`, so that an
-- evaluation of an older state of the job is recognised and dropped.
CREATE TABLE job_condition (
    job_no      int8 PRIMARY KEY,
    tenant_no   int4 NOT NULL,
    shard       int2 NOT NULL,
    judge_at    int8 NOT NULL,
    touched     int4 NOT NULL GENERATED BY DEFAULT AS IDENTITY (CYCLE),
    -- NULL until the job is evaluated
    level       int2,
    reason      int2,
    error_at    int8,
    since       int8
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_condition_due ON job_condition (shard, judge_at);
CREATE INDEX job_condition_at_risk ON job_condition (tenant_no, error_at, job_no) WHERE level > 0;
-- Jobs in ERROR only because of a blackout (reason 9), which alerts can ignore.
CREATE INDEX job_condition_held ON job_condition (tenant_no) WHERE reason = 9;

-- Runs that failed after all retries, of jobs that keep dead letters. A dead letter is written when
-- the run ends and is kept longer than its attempt, so it has a copy of the error.
CREATE TABLE dead_letter (
    job_no       int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    sequence     int4 NOT NULL,
    attempt      int2 NOT NULL,
    tenant_no    int4 NOT NULL,
    died_at      int8 NOT NULL,
    reason       int2 NOT NULL,
    status       int2 NOT NULL,
    error        text,
    -- when the dead letter was redriven, and the run that the redrive started
    redriven_at  int8,
    new_at       int8,
    new_sequence int4,
    PRIMARY KEY (job_no, scheduled_at, sequence)
);
CREATE INDEX dead_letter_place ON dead_letter (tenant_no, died_at, scheduled_at, job_no, sequence);
CREATE INDEX dead_letter_age ON dead_letter (died_at);

-- Number of runs that failed in a row, for jobs that pause themselves after repeated failures. A
-- success writes nothing here: `succeeded_runs` is a copy of the job's count at the last failure,
-- and if the two differ, a success has ended the series. Jobs with `is_due` must be paused.
CREATE TABLE failing (
    job_no       int8 PRIMARY KEY,
    runs         int4 NOT NULL,
    succeeded_runs int4 NOT NULL,
    is_due       bool NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX failing_due ON failing (job_no) WHERE is_due;

-- Totals of runs, to which nodes add every few seconds.
CREATE TABLE run_totals (
    tenant_no   int4 PRIMARY KEY,
    completed   int8 NOT NULL DEFAULT 0,
    failed      int8 NOT NULL DEFAULT 0,
    timed_out   int8 NOT NULL DEFAULT 0,
    cancelled   int8 NOT NULL DEFAULT 0,
    retries     int8 NOT NULL DEFAULT 0,
    stolen      int8 NOT NULL DEFAULT 0,
    succeeded_us int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- When a node last reported, and how many attempts of each tenant ran on the node at that time.
CREATE TABLE run_stats_node (
    node_no     int4 PRIMARY KEY,
    reported_at int8 NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE run_stats_running (
    node_no     int4 NOT NULL,
    tenant_no   int4 NOT NULL,
    running     int4 NOT NULL,
    PRIMARY KEY (node_no, tenant_no)
) WITH (fillfactor = 50);

-- Failures grouped by similar error, with a count and the newest attempt of each group.
CREATE TABLE failure (
    tenant_no   int4 NOT NULL,
    fingerprint int8 NOT NULL,
    count       int8 NOT NULL,
    first_at    int8 NOT NULL,
    last_at     int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    error       text NOT NULL,
    PRIMARY KEY (tenant_no, fingerprint)
);
CREATE INDEX failure_newest ON failure (tenant_no, last_at, fingerprint);
CREATE INDEX failure_oldest ON failure (last_at);

-- How many jobs of a tenant have a load profile, and the sum of the costs of one run of each job.
-- Firing does not change a job's load profile, so only transactions that set or remove the next run
-- time of a job write here. They do so with their last statement and in key order, so that two of
-- them cannot deadlock. The sum is numeric, because the costs of many jobs (up to a year each)
-- overflow an int8.
CREATE TABLE load_profile (
    tenant_no   int4 NOT NULL,
    key         int8 NOT NULL,
    profile     text NOT NULL,
    jobs        int8 NOT NULL,
    cost_us     numeric NOT NULL,
    PRIMARY KEY (tenant_no, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Plans that move jobs to other start times, and their progress. State: 0 planned, 1 running, 2
-- done, 3 stopped.
CREATE TABLE rebalance (
    id          uuid PRIMARY KEY,
    tenant_no   int4 NOT NULL,
    state       int2 NOT NULL,
    undoes      uuid,
    undone_by   uuid,
    created_by  text NOT NULL,
    created_at  int8 NOT NULL,
    touched_at  int8,
    ended_at    int8,
    parts       int4 NOT NULL,
    parts_done  int4 NOT NULL,
    planned     int8 NOT NULL,
    moved       int8 NOT NULL,
    changed     int8 NOT NULL,
    skipped     int8 NOT NULL,
    summary     text NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rebalance_place ON rebalance (tenant_no, created_at, id) WHERE state <> 0;
CREATE INDEX rebalance_age ON rebalance (created_at);

CREATE TABLE rebalance_part (
    rebalance   uuid NOT NULL,
    part        int4 NOT NULL,
    moves       bytea NOT NULL,
    made        bool[],
    PRIMARY KEY (rebalance, part)
);
-- The moves are already compressed.
ALTER TABLE rebalance_part ALTER COLUMN moves SET STORAGE EXTERNAL;

-- Hourly scores of how evenly the runs of a tenant were spread over time.
CREATE TABLE balance_score (
    tenant_no   int4 NOT NULL,
    hour        int8 NOT NULL,
    score       float8 NOT NULL,
    next_score  float8 NOT NULL,
    cost_score  float8 NOT NULL,
    peak        float8 NOT NULL,
    mean        float8 NOT NULL,
    jobs        int8 NOT NULL,
    PRIMARY KEY (tenant_no, hour)
);
CREATE INDEX balance_score_age ON balance_score (hour);

-- Pages that crawls store. `page` is written whenever a page is seen, but `page_text` only when its
-- content has changed. An update that does not fit on its database page writes new entries into all
-- indexes, and the index on words is the most expensive.
CREATE TABLE page (
    page_no     int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          uuid NOT NULL UNIQUE,
    job_no      int8 NOT NULL,
    tenant_no   int4 NOT NULL,
    url         text NOT NULL,
    title       text,
    status      int4 NOT NULL,
    content_type text NOT NULL,
    depth       int4 NOT NULL,
    content_hash bytea NOT NULL,
    bytes       int8 NOT NULL,
    first_seen_at int8 NOT NULL,
    changed_at  int8 NOT NULL,
    seen_at     int8 NOT NULL,
    etag        text,
    last_modified text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX page_job ON page (job_no, page_no);
CREATE INDEX page_tenant ON page (tenant_no, page_no);

-- The program splits and folds `words`, so they depend on no locale and no text search
-- configuration. The words of the title come first, with weight A, then the words of the text. The
-- lexemes `_t1` and `_j7`, which no text can contain, are the tenant and the job, so that a search
-- skips pages of other tenants and jobs in the index.
CREATE TABLE page_text (
    page_no     int8 PRIMARY KEY,
    text        text NOT NULL,
    links       text NOT NULL,
    metadata    text NOT NULL,
    fields      text NOT NULL,
    words       tsvector NOT NULL
);
-- New entries go to a pending list that is merged when it is full. A page has hundreds of words,
-- and this writes the words of many pages together. Every search reads the pending list, so its
-- size is set here and not left to the server.
CREATE INDEX page_text_words ON page_text USING gin (words)
    WITH (fastupdate = on, gin_pending_list_limit = 4096);

-- Size of the pages of a job; the row exists only if the job has pages. A transaction that changes
-- the pages of a job locks this row first.
CREATE TABLE page_usage (
    job_no      int8 PRIMARY KEY,
    bytes       int8 NOT NULL DEFAULT 0,
    pages       int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Requests with an idempotency key, and their responses; `status` is NULL while the request runs.
CREATE TABLE request (
    tenant_no   int4 NOT NULL,
    key         text NOT NULL,
    fingerprint bytea NOT NULL,
    begun_at    int8 NOT NULL,
    given_up_at int8 NOT NULL,
    status      int2,
    headers     text,
    body        bytea,
    PRIMARY KEY (tenant_no, key)
);
CREATE INDEX request_age ON request (begun_at);

-- API keys, of which only hashes are stored. The name of a revoked key can be used again.
CREATE TABLE api_key (
    id          uuid PRIMARY KEY,
    tenant_no   int4 NOT NULL REFERENCES tenant,
    name        text NOT NULL,
    role        int2 NOT NULL,
    hash        bytea NOT NULL UNIQUE,
    created_by  text NOT NULL,
    created_at  int8 NOT NULL,
    expires_at  int8,
    revoked_at  int8,
    last_used_at int8
);
CREATE UNIQUE INDEX api_key_name ON api_key (tenant_no, name) WHERE revoked_at IS NULL;
CREATE INDEX api_key_tenant ON api_key (tenant_no, id);

-- The audit log of requests that changed something or were denied. Tenant 0 means that the client
-- was not authenticated.
CREATE TABLE audit (
    no          int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          int8 NOT NULL,
    tenant_no   int4 NOT NULL,
    subject     text NOT NULL,
    role        int2,
    action      text NOT NULL,
    target      text,
    status      int2 NOT NULL,
    denied      bool NOT NULL,
    detail      text,
    remote      text,
    request_id  text NOT NULL
);
CREATE INDEX audit_place ON audit (tenant_no, at, no);

-- Named secrets. Values are encrypted with a key that is not in the database. The tenant and the name
-- are authenticated with the value, so a ciphertext copied to another row does not decrypt.
CREATE TABLE secret (
    tenant_no   int4 NOT NULL REFERENCES tenant,
    name        text COLLATE "C" NOT NULL,
    version     int4 NOT NULL,
    key_id      text NOT NULL,
    nonce       bytea NOT NULL,
    ciphertext  bytea NOT NULL,
    created_at  int8 NOT NULL,
    created_by  text NOT NULL,
    updated_at  int8 NOT NULL,
    updated_by  text NOT NULL,
    PRIMARY KEY (tenant_no, name)
);

-- Events for listeners. The table is unlogged: after a crash of the database, listeners learn that
-- events may be missing, and nothing else depends on events.
CREATE UNLOGGED TABLE event (
    -- An event with a higher number becomes visible later. A number is the clock in microseconds as
    -- long as the clock moves forward, so numbers still grow after a crash has emptied the table.
    no            int8 PRIMARY KEY,
    -- NULL means that events are missing here; the other columns are then NULL as well
    kind          int2,
    tenant_no     int4,
    job_id        uuid,
    -- key of the attempt, if the event is about an attempt
    scheduled_at  int8,
    job_no        int8,
    sequence      int4,
    attempt       int2,
    at            int8,
    data          text,
    -- the job's name when the event was written
    job_name      text
) WITH (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);

-- Nodes with event listeners, and the time until which they listen at least.
CREATE UNLOGGED TABLE event_listener (
    node   text PRIMARY KEY,
    until  int8 NOT NULL
) WITH (fillfactor = 50);
