-- Times are microseconds since 1970, UTC. Statuses and other codes are those of
-- evenkeel_store::codes; a migration writes their numbers, because it must never change.
--
-- Firing and finishing update rows of job_state and attempt in place (HOT updates): the columns they
-- write are in no index, except job_state.slot.

CREATE TABLE tenant (
    tenant_no   int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    -- Numbers of jobs: all except deleted ones, and those in WARNING, in ERROR, paused, cancelled.
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

-- What clients define. The scheduler reads `definition` once, when it loads the job. Names, sources
-- and labels are ordered by code point (COLLATE "C"), whatever the language of the database: their
-- indexes then also find prefixes, and all stores return the same order.
--
-- No foreign key to tenant: the tenant number was looked up just before, and tenants are never
-- deleted. The check made a batch of new jobs an eighth slower, and every registration locked the
-- tenant's row.
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
    -- counts the jobs of a tenant from 1; clients may use it instead of the id
    number      int8 NOT NULL,
    target_no   int8,
    -- when the job got this target; NULL if it has had it from the start. Runs that ended before
    -- do not count for the target.
    target_since int8,
    -- why the job is paused, if the client gave a reason
    note        text,
    -- key in dedup_key; NULL if the job has none
    dedup_key   uuid
);
-- State 3 is deleted: the name can be used again.
CREATE UNIQUE INDEX job_name ON job (tenant_no, name, configuration) WHERE state <> 3;
-- A walk over all jobs of a tenant reads only this index and not the wide rows.
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

-- The next numbers of a tenant. Not in the tenant's row: commands and judgements lock that row last,
-- while a registration takes its numbers first and may then wait for a name that one of them holds.
CREATE TABLE numbering (
    tenant_no   int4 PRIMARY KEY,
    next_job    int8 NOT NULL DEFAULT 1,
    next_target int8 NOT NULL DEFAULT 1,
    targets     int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- What jobs work on (a source, a site), known by a number within the tenant. The last success of a
-- target is read from the jobs that name it, so the end of a run writes nothing here. A job that
-- stops naming the target leaves its last success in `last_success_at`.
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

-- The state of a job: narrow, written once by each fire and once by each finish.
--
-- The order of the columns matters: the write-ahead log holds a changed row from the first changed
-- byte to the last. Firing writes the columns from `next_at` to `live`, finishing those from `live` to
-- `failed_runs`.
CREATE TABLE job_state (
    job_no      int8 PRIMARY KEY,
    tenant_no   int4 NOT NULL,
    generation  int4 NOT NULL DEFAULT 1,
    shard       int2 NOT NULL,
    active      bool NOT NULL DEFAULT true,
    -- next_at in quarters of an hour
    slot        int4,
    placed_at   int8,
    next_at     int8,
    last_fired_at int8,
    -- the newest run
    head_at     int8,
    executions  int8 NOT NULL DEFAULT 0,
    -- number of regular times that were fired
    fired       int8 NOT NULL DEFAULT 0,
    head_sequence int4,
    -- number of active runs
    live        int4 NOT NULL DEFAULT 0,
    last_status int2,
    -- the next time depends on the end of a run
    follows_end bool NOT NULL DEFAULT false,
    -- the job has a row in job_condition
    has_condition bool NOT NULL DEFAULT false,
    failures    int4 NOT NULL DEFAULT 0,
    last_start_at int8,
    last_end_at int8,
    last_good_start_at int8,
    last_good_end_at int8,
    average_us  int8,
    variance    float8 NOT NULL DEFAULT 0,
    -- scheduled times of the newest succeeded and the newest failed attempt, which pruning keeps
    succeeded_at int8,
    failed_at   int8,
    succeeded_runs int4 NOT NULL DEFAULT 0,
    failed_runs int4 NOT NULL DEFAULT 0,
    -- Runs scheduled up to this time do not continue: a failed attempt is not retried, an attempt
    -- that lost its worker is cancelled. A pause sets the current time, so that a later trigger still
    -- runs; cancelling or deleting the job sets the largest number. The finish of an attempt reads
    -- it from the row that it locks anyway.
    stopped_at  int8,
    -- key in load_profile, 0 if the job has none
    load_profile int8 NOT NULL DEFAULT 0,
    cost_us     int8 NOT NULL DEFAULT 0,
    cost_stated bool NOT NULL DEFAULT false,
    -- the job is counted in load_profile: it has a next time and a profile
    counted     bool NOT NULL DEFAULT false
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- Finds the jobs that are due soon. A job with a short interval seldom changes its slot.
CREATE INDEX job_state_slot ON job_state (shard, slot) WHERE slot IS NOT NULL;
-- Active jobs without a next time: they have an active run, or have ended.
CREATE INDEX job_state_unplaced ON job_state (tenant_no, job_no) WHERE slot IS NULL AND active;

-- Jobs that their scheduler must reload; it deletes the row when it does.
CREATE TABLE changed_job (
    shard       int2 NOT NULL,
    job_no      int8 NOT NULL,
    PRIMARY KEY (shard, job_no)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Retries and triggers that are due at a time of their own.
CREATE TABLE delayed_attempt (
    shard       int2 NOT NULL,
    due         int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    tenant_no   int4 NOT NULL,
    -- the run's own priority; NULL: the job's
    priority    int2,
    PRIMARY KEY (shard, due, scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX delayed_attempt_job ON delayed_attempt (job_no, scheduled_at, sequence, attempt);

-- The queue: attempts that may be claimed. A claim deletes the row.
CREATE TABLE ready (
    pool        text NOT NULL,
    lane        int2 NOT NULL,
    priority    int2 NOT NULL,
    should_start_by int8 NOT NULL,
    -- when the attempt could first have been claimed
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
    -- may be claimed between these times, and not by these nodes (a list of names)
    open_from   int8,
    open_until  int8,
    forbidden_nodes jsonb,
    -- Position in the aging order. It never changes while the attempt waits, so no row is rewritten
    -- as time passes. The better of the orders by priority and by `rise` counts (core's Aging).
    rise        int8 NOT NULL,
    -- the run has a priority of its own: a change of the job's priority does not apply
    own_priority bool NOT NULL DEFAULT false,
    limit_key   bytea,
    limit_max   int4,
    -- An attempt over a concurrency limit waits in a pool that no node serves, named `~` plus the
    -- limit key in hex. `home_pool` is the pool it returns to, `limited_by_max` the limit's size.
    home_pool   text,
    limited_by_max int4,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ready_order ON ready (pool, lane, priority DESC, should_start_by, since, job_no);
CREATE INDEX ready_rise ON ready (pool, lane, rise, should_start_by, since, job_no);
CREATE INDEX ready_job ON ready (job_no);
CREATE INDEX ready_open_until ON ready (open_until) WHERE open_until IS NOT NULL;
CREATE INDEX ready_limited ON ready (pool, limited_by_max) WHERE home_pool IS NOT NULL;

-- The history: attempts that were claimed or ended without being claimed, and records of skipped
-- times. The key starts with the time, so new rows go to the end. No index holds `status`: every
-- finish would then write a new entry into each index.
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
    -- the previous run of the job; only on attempt 0
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
    -- the run was cancelled: it is not retried, whatever the outcome of this attempt
    cancel_requested bool NOT NULL DEFAULT false,
    -- the cancellation makes place for a newer time of the job. Here and not in `cancellation`: a
    -- transaction that waits for this row sees it once it gets the row.
    superseded  bool NOT NULL DEFAULT false,
    -- the run's own priority, which a requeued attempt keeps; NULL: the job's
    priority    int2,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0.2);

-- What a running attempt has saved for the next attempt of its run.
CREATE TABLE checkpoint (
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    saved_at    int8 NOT NULL,
    data        bytea NOT NULL,
    PRIMARY KEY (scheduled_at, job_no, sequence)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_cost_delay = 0);

-- Progress and log of running attempts, rewritten every few seconds. A row is deleted with the end
-- of its attempt; a row with an older fence is ignored.
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
    -- attempts of this node with an earlier scheduled time are all in long_attempt
    low_watermark int8 NOT NULL,
    -- The earliest time that the node has fired or claimed since its last ping. That ping may have
    -- been sent before, so the next ping does not raise low_watermark above it.
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

-- Running attempts that must end; their node deletes the row when it has ended them.
CREATE TABLE cancellation (
    node_no     int4 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    PRIMARY KEY (node_no, scheduled_at, job_no, sequence, attempt)
);

-- Messages to the nodes of running attempts; a node deletes them when it reads them.
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

-- Attempts that started under a concurrency limit. A row counts only while its attempt runs, so the
-- end of an attempt need not delete it.
CREATE TABLE permit (
    key         bytea NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    PRIMARY KEY (key, scheduled_at, job_no, sequence, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The job that last took a deduplication key. Whether that job still holds the key is found out when
-- another job needs it, so claims and ends of runs write nothing here. The holder is known by its id,
-- which exists before the job is stored: inserting the key locks it.
CREATE TABLE dedup_key (
    tenant_no    int4 NOT NULL,
    -- 16 bytes of a hash of the executor and the text
    key          uuid NOT NULL,
    job_id       uuid NOT NULL,
    taken_at     int8 NOT NULL,
    PRIMARY KEY (tenant_no, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The condition of jobs whose condition may not be OK. A transaction that changes a row has locked
-- the job's row in job_state. Each change draws a new value of `touched`, so that a judgement of an
-- older state of the job is recognised and dropped.
CREATE TABLE job_condition (
    job_no      int8 PRIMARY KEY,
    tenant_no   int4 NOT NULL,
    shard       int2 NOT NULL,
    judge_at    int8 NOT NULL,
    touched     int4 NOT NULL GENERATED BY DEFAULT AS IDENTITY (CYCLE),
    -- NULL until the job is judged
    level       int2,
    reason      int2,
    error_at    int8,
    since       int8
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_condition_due ON job_condition (shard, judge_at);
CREATE INDEX job_condition_at_risk ON job_condition (tenant_no, error_at, job_no) WHERE level > 0;
-- Jobs in ERROR only because of a blackout (reason 9), which alerts can leave out.
CREATE INDEX job_condition_held ON job_condition (tenant_no) WHERE reason = 9;

-- Runs that failed for good, of jobs that list them. Written with the end of the run; the row outlives
-- its attempt, so it holds the error as well.
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
    -- when it was redriven, and the run that this created
    redriven_at  int8,
    new_at       int8,
    new_sequence int4,
    PRIMARY KEY (job_no, scheduled_at, sequence)
);
CREATE INDEX dead_letter_place ON dead_letter (tenant_no, died_at, scheduled_at, job_no, sequence);
CREATE INDEX dead_letter_age ON dead_letter (died_at);

-- Runs that failed in a row, of jobs that pause themselves after some failures. A success writes
-- nothing here: `succeeded_runs` is a copy of the job's at the last failure, and if the two differ, the
-- series has ended. Jobs with `is_due` are to be paused.
CREATE TABLE failing (
    job_no       int8 PRIMARY KEY,
    runs         int4 NOT NULL,
    succeeded_runs int4 NOT NULL,
    is_due       bool NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX failing_due ON failing (job_no) WHERE is_due;

-- Sums over runs. Nodes add to them every few seconds.
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
-- When a node last reported, and how many attempts of each tenant ran on it then.
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

-- Failures with similar errors, counted, with the newest attempt of each group.
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

-- How many jobs of a tenant have a load profile, and the summed cost of one run of each. Firing does
-- not change a job's profile, so only transactions that give or take a job its next time write here:
-- as their last statement and in the order of the key, so that two of them cannot deadlock. The sum is
-- numeric, because the costs of many jobs (up to a year each) overflow an int8.
CREATE TABLE load_profile (
    tenant_no   int4 NOT NULL,
    key         int8 NOT NULL,
    profile     text NOT NULL,
    jobs        int8 NOT NULL,
    cost_us     numeric NOT NULL,
    PRIMARY KEY (tenant_no, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Plans to move jobs to other times, and their progress. State: 0 planned, 1 running, 2 done,
-- 3 stopped.
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
-- The moves are compressed already.
ALTER TABLE rebalance_part ALTER COLUMN moves SET STORAGE EXTERNAL;

-- How even the load of a tenant was, hour by hour.
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

-- Pages that crawls store. `page` is written whenever a page is seen, `page_text` only when the content
-- has changed: an update that does not fit on its database page writes new entries into all indexes,
-- and the index on words is the most expensive.
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

-- The program splits and folds `words`, so they depend on no locale and no text search configuration:
-- first the words of the title with weight A, then those of the text. The lexemes `_t1` and `_j7`,
-- which no text can contain, are the tenant and the job: a search skips other pages in the index.
CREATE TABLE page_text (
    page_no     int8 PRIMARY KEY,
    text        text NOT NULL,
    links       text NOT NULL,
    metadata    text NOT NULL,
    fields      text NOT NULL,
    words       tsvector NOT NULL
);
-- New entries go to a pending list that is merged when it is full: a page has hundreds of words, and
-- the words of many pages are then written together. Every search reads the pending list, so its
-- size is set here and not left to the server.
CREATE INDEX page_text_words ON page_text USING gin (words)
    WITH (fastupdate = on, gin_pending_list_limit = 4096);

-- Size of the pages of a job; a row exists if the job has pages. A transaction that changes the pages
-- of a job locks it first.
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

-- Requests that changed something or were denied. Tenant 0: the client was not authenticated.
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

-- Events for listeners. Unlogged: after a crash of the database, listeners learn that events may be
-- missing, and nothing else depends on them.
CREATE UNLOGGED TABLE event (
    -- Larger numbers become visible later. A number is the clock in microseconds as long as the clock
    -- moves forward, so numbers still grow after a crash has emptied the table.
    no            int8 PRIMARY KEY,
    -- NULL: events are missing here; the other columns are NULL, too
    kind          int2,
    tenant_no     int4,
    job_id        uuid,
    -- key of the attempt, if the event is about one
    scheduled_at  int8,
    job_no        int8,
    sequence      int4,
    attempt       int2,
    at            int8,
    data          text,
    -- the job's name when the event was written
    job_name      text
) WITH (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);

-- Nodes with event listeners, and until when they listen at least.
CREATE UNLOGGED TABLE event_listener (
    node   text PRIMARY KEY,
    until  int8 NOT NULL
) WITH (fillfactor = 50);
