-- Cancelling runs.

-- :fragment withdrawn_columns
scheduled_at, job_no, sequence, attempt, tenant_no, fence, crashes, prev_at, prev_sequence

-- :name cancel_run_mark (scheduled_at, job_no, sequence, tenant)
-- A finish or requeue that waits for the attempt's row sees the cancellation mark in the row. The
-- node of the attempt reads the table `cancellation`.
WITH running AS (
    UPDATE attempt SET cancel_requested = true
     WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence
       AND tenant_no = :tenant AND status = {attempt.running}
 RETURNING node_no, scheduled_at, job_no, sequence, attempt
), notified AS (
    INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt)
    SELECT * FROM running ON CONFLICT DO NOTHING
)
SELECT scheduled_at, job_no, sequence, attempt FROM running;

-- :name cancel_run_close_runs (job_no, is_new, scheduled_at, sequence, now)
WITH before AS MATERIALIZED (
    SELECT head_at, head_sequence FROM job_state WHERE job_no = :job_no FOR NO KEY UPDATE
), closed AS (
    UPDATE job_state
       SET live = greatest(live - 1, 0),
           head_at = CASE WHEN :is_new THEN :scheduled_at ELSE head_at END,
           head_sequence = CASE WHEN :is_new THEN :sequence ELSE head_sequence END,
           last_status = {attempt.cancelled},
           has_condition = stopped_at IS DISTINCT FROM {stopped.for_good}
     WHERE job_no = :job_no
 RETURNING shard, job_no, tenant_no, has_condition
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM closed WHERE has_condition
        {on_conflict_judge_again}
), changed AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM closed WHERE has_condition
        {on_conflict_reload_again}
)
SELECT head_at, head_sequence, {clock} AS now FROM before;

-- :name cancel_run_find (scheduled_at, job_no, sequence, tenant)
-- If `is_active` is true, an unfinished attempt has moved to this table since the previous
-- statements.
SELECT count(*) > 0 AS exists,
       count(*) FILTER (WHERE status IN ({attempts.unfinished})) > 0 AS is_active
  FROM attempt WHERE scheduled_at = :scheduled_at AND job_no = :job_no
  AND sequence = :sequence AND tenant_no = :tenant;

-- :name cancel_run_ready (scheduled_at, job_no, sequence, tenant)
DELETE FROM ready WHERE scheduled_at = :scheduled_at AND job_no = :job_no
AND sequence = :sequence AND tenant_no = :tenant
RETURNING {withdrawn_columns};

-- :name cancel_run_delayed (scheduled_at, job_no, sequence, tenant)
DELETE FROM delayed_attempt WHERE job_no = :job_no AND scheduled_at = :scheduled_at
AND sequence = :sequence AND tenant_no = :tenant
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no;

-- :name cancellations
-- The statement also deletes cancellations of attempts that have finished in the meantime.
WITH running AS MATERIALIZED (
    SELECT c.scheduled_at, c.job_no, c.sequence, c.attempt, r.superseded
      FROM cancellation c JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
     WHERE c.node_no = $1 AND r.node_no = $1 AND r.status = {attempt.running}
), ended AS (
    DELETE FROM cancellation c
     WHERE node_no = $1
       AND NOT EXISTS (SELECT FROM running
                        WHERE running.scheduled_at = c.scheduled_at AND running.job_no = c.job_no
                          AND running.sequence = c.sequence AND running.attempt = c.attempt)
)
SELECT scheduled_at, job_no, sequence, attempt, superseded FROM running;
