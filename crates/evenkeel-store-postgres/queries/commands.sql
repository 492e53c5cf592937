-- Commands on jobs: pause, resume, cancel, change, delete.

-- :name command_close_runs (job_no, live, head_at, head_sequence, last_status)
-- If runs of a job are withdrawn, its condition is evaluated again and its scheduler reloads the
-- job, unless the job is cancelled or deleted.
WITH closed AS (
    UPDATE job_state s
       SET live = d.live, head_at = d.head_at, head_sequence = d.head_sequence,
           last_status = :last_status,
           has_condition = s.stopped_at IS DISTINCT FROM {stopped.for_good}
      FROM unnest(:job_no::int8[], :live::int4[], :head_at::int8[], :head_sequence::int4[])
           AS d(job_no, live, head_at, head_sequence)
     WHERE s.job_no = d.job_no
 RETURNING s.job_no, s.tenant_no, s.shard, s.has_condition
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM closed WHERE has_condition
        {on_conflict_judge_again}
)
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM closed WHERE has_condition
    {on_conflict_reload_again};

-- :name command_count (ended_jobs, tenant, deleted, paused, cancelled)
-- This is the last statement of a command, because an evaluation holds rows of jobs while it waits
-- for the tenant's row.
WITH removed AS (
    DELETE FROM job_condition WHERE job_no = ANY (:ended_jobs::int8[]) RETURNING level
)
UPDATE tenant
   SET job_count = job_count - :deleted, paused = paused + :paused,
   cancelled = cancelled + :cancelled,
       warnings = warnings - (SELECT count(*) FROM removed WHERE level = {condition.warning}),
       errors = errors - (SELECT count(*) FROM removed WHERE level = {condition.error})
 WHERE tenant_no = :tenant;

-- :name command_find_running (job_no, running, ends)
-- Finds the running attempts of jobs along the links of their runs, up to 10,000 runs back, and
-- cancels them where `ends` is true. If the first attempt of a run was never claimed, its link is
-- in the queue.
WITH RECURSIVE busy AS MATERIALIZED (
    SELECT d.job_no, d.running, d.ends, s.head_at, s.head_sequence
      FROM unnest(:job_no::int8[], :running::int8[], :ends::bool[]) AS d(job_no, running, ends)
      JOIN job_state s USING (job_no)
), linked_run AS (
    SELECT job_no, head_at AS at, head_sequence AS sequence, 0 AS depth, running, ends
      FROM busy WHERE head_at IS NOT NULL
     UNION ALL
    SELECT c.job_no, p.prev_at, p.prev_sequence, c.depth + 1, c.running - p.running, c.ends
      FROM linked_run c
     CROSS JOIN LATERAL (SELECT max(prev_at) AS prev_at, max(prev_sequence) AS prev_sequence,
                                count(*) FILTER (WHERE status = {attempt.running}) AS running
                           FROM (SELECT prev_at, prev_sequence, status FROM attempt r
                                  WHERE r.scheduled_at = c.at AND r.job_no = c.job_no
                                    AND r.sequence = c.sequence
                                  UNION ALL
                                 SELECT prev_at, prev_sequence, {attempt.pending} FROM ready q
                                  WHERE q.scheduled_at = c.at AND q.job_no = c.job_no
                                    AND q.sequence = c.sequence) AS a) AS p
     WHERE p.prev_at IS NOT NULL AND c.running > p.running AND c.depth < 10000
), running AS (
    SELECT r.node_no, r.scheduled_at, r.job_no, r.sequence, r.attempt, c.ends
      FROM linked_run c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                             AND r.sequence = c.sequence
     WHERE r.status = {attempt.running}
), notified AS (
    INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt)
    SELECT node_no, scheduled_at, job_no, sequence, attempt FROM running WHERE ends
        ON CONFLICT DO NOTHING
)
SELECT scheduled_at, job_no, sequence, attempt FROM running;

-- :name command_delete_changes
DELETE FROM changed_job c USING unnest($1::int8[]) AS d(job_no)
 WHERE c.shard = (d.job_no & 255)::int2 AND c.job_no = d.job_no;

-- :name command_leave_targets (tenant, job_nos)
-- Saves the last success of jobs in their target, before the jobs change or lose the target.
WITH left_behind AS MATERIALIZED (
    SELECT j.target_no AS number, max(s.last_good_end_at) AS at
      FROM job j JOIN job_state s USING (job_no)
     WHERE j.job_no = ANY (:job_nos::int8[]) AND j.target_no IS NOT NULL
       AND s.last_good_end_at > coalesce(j.target_since, 0)
     GROUP BY j.target_no
), locked AS MATERIALIZED (
    SELECT t.number, l.at FROM target t JOIN left_behind l USING (number)
     WHERE t.tenant_no = :tenant ORDER BY t.number FOR NO KEY UPDATE OF t
)
UPDATE target t SET last_success_at = greatest(t.last_success_at, l.at)
  FROM locked l WHERE t.tenant_no = :tenant AND t.number = l.number;

-- :name command_drop_dedup (tenant, keys)
DELETE FROM dedup_key WHERE tenant_no = :tenant AND key = ANY (:keys::uuid[]);

-- :name command_lock_jobs (ids, tenant)
SELECT job_no, id FROM job
 WHERE id = ANY (:ids::uuid[]) AND tenant_no = :tenant AND state <> {job.deleted}
 ORDER BY job_no FOR NO KEY UPDATE;

-- :name command_lock_ready
-- A claim locks rows of the queue before the job's state. This statement waits for such a claim,
-- and a later claim skips the rows that it has locked.
SELECT FROM ready WHERE job_no = ANY ($1::int8[])
 ORDER BY job_no, scheduled_at, sequence, attempt FOR UPDATE;

-- :name command_lock_rest
-- Locks attempts that became pending after the pending attempts were locked and before the states
-- were locked. A transaction that claims or fires such an attempt waits for a job's state, so
-- waiting for that transaction here would deadlock. Returns whether all pending attempts are
-- locked.
WITH queue AS MATERIALIZED (
    SELECT FROM ready WHERE job_no = ANY ($1::int8[]) FOR UPDATE SKIP LOCKED
), delayed AS MATERIALIZED (
    SELECT FROM delayed_attempt WHERE job_no = ANY ($1::int8[]) FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM queue) = (SELECT count(*) FROM ready WHERE job_no = ANY ($1::int8[]))
   AND (SELECT count(*) FROM delayed) = (SELECT count(*) FROM delayed_attempt WHERE job_no = ANY ($1::int8[]));

-- :name command_lock_states
SELECT job_no, live, head_at, head_sequence, counted, load_profile, cost_us FROM job_state
 WHERE job_no = ANY ($1::int8[]) ORDER BY job_no FOR NO KEY UPDATE;

-- :name command_lock_delayed
-- Does the same as command_lock_ready, for a transaction that fires a delayed attempt.
SELECT FROM delayed_attempt WHERE job_no = ANY ($1::int8[])
 ORDER BY job_no, scheduled_at, sequence, attempt FOR UPDATE;

-- :name command_mark_dedup (job_no, key)
UPDATE job j SET dedup_key = d.key
  FROM unnest(:job_no::int8[], :key::uuid[]) AS d(job_no, key)
 WHERE j.job_no = d.job_no;

-- :name command_open_ready (
--   job_no, open_from, open_until, forbidden_nodes, priority, limit_key, limit_max
-- )
-- An attempt in a limit queue returns to its pool, because its limit may have changed. A separate
-- priority of the run stays; otherwise the job's new priority applies, and the waiting time so far
-- still counts. All these rows are already locked.
UPDATE ready q
   SET open_from = d.open_from, open_until = d.open_until,
       forbidden_nodes = d.forbidden_nodes::jsonb,
       rise = CASE WHEN q.own_priority THEN q.rise ELSE q.rise + q.priority - d.priority END,
       priority = CASE WHEN q.own_priority THEN q.priority ELSE d.priority END,
       limit_key = d.limit_key, limit_max = d.limit_max,
       pool = coalesce(q.home_pool, q.pool), home_pool = NULL, limited_by_max = NULL
  FROM unnest(:job_no::int8[], :open_from::int8[], :open_until::int8[], :forbidden_nodes::text[],
              :priority::int2[], :limit_key::bytea[], :limit_max::int4[])
       AS d(job_no, open_from, open_until, forbidden_nodes, priority, limit_key, limit_max)
 WHERE q.job_no = d.job_no;

-- :name command_record_withdrawn (
--   status, now, job_no, scheduled_at, sequence, attempt, tenant, fence, crashes, prev_at,
--   prev_sequence
-- )
-- Ends pending attempts. A requeued attempt already has a row.
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes,
                 prev_at, prev_sequence, finished_at)
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, d.tenant_no, :status, d.fence, d.crashes,
       d.prev_at, d.prev_sequence, :now
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
              :tenant::int4[], :fence::int4[], :crashes::int2[],
              :prev_at::int8[], :prev_sequence::int4[])
       AS d(job_no, scheduled_at, sequence, attempt, tenant_no, fence, crashes, prev_at,
            prev_sequence)
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET status = excluded.status, finished_at = excluded.finished_at;

-- :name command_delayed (tenant, job_no, at, sequence)
INSERT INTO delayed_attempt (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no)
SELECT (d.job_no & 255)::int2, d.at, d.at, d.job_no, d.sequence, 0, :tenant
  FROM unnest(:job_no::int8[], :at::int8[], :sequence::int4[]) AS d(job_no, at, sequence);

-- :name command_withdraw_ready
DELETE FROM ready WHERE job_no = ANY ($1::int8[])
RETURNING {withdrawn_columns};

-- :name command_withdraw_delayed
DELETE FROM delayed_attempt WHERE job_no = ANY ($1::int8[])
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no;

-- :name command_write_jobs (
--   now, job_no, state, about, name, configuration, source_id, definition, target_no, note
-- )
-- If `about` is NULL, the job keeps its name, source and target. The note stays unless the state of
-- the job changes.
UPDATE job j
   SET state = d.state, updated_at = :now,
       note = CASE WHEN j.state = d.state THEN j.note ELSE d.note END,
       name = CASE WHEN d.about IS NULL THEN j.name ELSE d.name END,
       configuration = CASE WHEN d.about IS NULL THEN j.configuration ELSE d.configuration END,
       source_id = CASE WHEN d.about IS NULL THEN j.source_id ELSE d.source_id END,
       target_no = CASE WHEN d.state = {job.deleted} THEN NULL WHEN d.about IS NULL THEN j.target_no
                        ELSE d.target_no END,
       target_since = CASE WHEN d.about IS NULL OR d.target_no IS NOT DISTINCT FROM j.target_no
                           THEN j.target_since ELSE :now END,
       about = coalesce(d.about, j.about), definition = coalesce(d.definition, j.definition)
  FROM unnest(:job_no::int8[], :state::int2[], :about::text[], :name::text[],
              :configuration::text[], :source_id::text[], :definition::text[],
              :target_no::int8[], :note::text[])
       AS d(job_no, state, about, name, configuration, source_id, definition, target_no, note)
 WHERE j.job_no = d.job_no;

-- :name command_write_states (
--   now, job_no, state, stopped_at, placed, next_at, slot, follows_end, begins, load_profile,
--   cost_us, cost_stated
-- )
-- A job that stops loses its next run time, and a cancelled or deleted job has no condition.
WITH changed AS (
    UPDATE job_state s
       SET generation = s.generation + 1, active = d.state = {job.active},
       stopped_at = d.stopped_at,
           next_at = CASE WHEN d.state <> {job.active} THEN NULL WHEN d.placed THEN d.next_at
                          ELSE s.next_at END,
           slot = CASE WHEN d.state <> {job.active} THEN NULL WHEN d.placed THEN d.slot ELSE s.slot END,
           placed_at = CASE WHEN d.placed THEN :now::int8 ELSE s.placed_at END,
           follows_end = coalesce(d.follows_end, s.follows_end),
           live = s.live + d.begins::int4,
           has_condition = s.has_condition AND d.state < {job.cancelled},
           load_profile = d.load_profile, cost_us = d.cost_us, cost_stated = d.cost_stated,
           counted = d.load_profile <> 0
      FROM unnest(:job_no::int8[], :state::int2[], :stopped_at::int8[], :placed::bool[],
                  :next_at::int8[], :slot::int4[],
                  :follows_end::bool[], :begins::bool[], :load_profile::int8[], :cost_us::int8[],
                  :cost_stated::bool[])
           AS d(job_no, state, stopped_at, placed, next_at, slot, follows_end, begins,
                load_profile, cost_us,
                cost_stated)
     WHERE s.job_no = d.job_no
 RETURNING s.shard, s.job_no, s.tenant_no, s.slot, s.has_condition
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM changed WHERE has_condition
        {on_conflict_judge_again}
)
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM changed WHERE slot <= :now::int8 / 900000000 + 1
    {on_conflict_reload_again};
