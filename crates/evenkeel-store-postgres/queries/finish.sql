-- Finishing attempts.

-- :name finish (
--   node, alpha, job_no, scheduled_at, sequence, attempt, fence, status, started_at, finished_at,
--   retry_at, stop_job, error, output, items_crawled, items_indexed, cpu_us, memory_kb, next_at,
--   slot, judge, priority
-- )
-- Finishes any batch: with failures, results, retries, jobs that stop, or jobs whose next run time
-- depends on when the run finishes. A next run time that was set after the attempt started belongs
-- to a newer schedule and stays. Each job occurs once in the batch. The arithmetic is the same as
-- in core's History::after. A stopped job and a cancelled run are not retried.
WITH ended AS (
    UPDATE attempt r
       SET status = d.status, finished_at = d.finished_at, error = d.error, output = d.output,
           items_crawled = d.items_crawled, items_indexed = d.items_indexed, cpu_us = d.cpu_us,
           memory_kb = d.memory_kb
      FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
                  :fence::int4[], :status::int2[],
                  :started_at::int8[], :finished_at::int8[], :retry_at::int8[], :stop_job::bool[],
                  :error::text[], :output::text[],
                  :items_crawled::int8[], :items_indexed::int8[], :cpu_us::int8[],
                  :memory_kb::int8[], :next_at::int8[], :slot::int4[],
                  :judge::bool[], :priority::int2[])
           AS d(job_no, scheduled_at, sequence, attempt, fence, status, started_at, finished_at,
                retry_at, stop_job, error, output, items_crawled, items_indexed, cpu_us, memory_kb,
                next_at, slot, judge, priority)
     WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no AND r.sequence = d.sequence
       AND r.attempt = d.attempt AND r.node_no = :node AND r.fence = d.fence
       AND r.status = {attempt.running}
 RETURNING r.job_no, r.scheduled_at, r.sequence, r.attempt, d.status, d.started_at, d.finished_at,
           greatest(d.finished_at - d.started_at, 0) AS took,
           CASE WHEN NOT r.cancel_requested THEN d.retry_at END AS retry_at,
           d.stop_job AND NOT r.cancel_requested AS stop_job, d.next_at, d.slot, d.judge, d.priority
), updated AS (
    UPDATE job_state s
       SET live = CASE WHEN e.retry_at IS NOT NULL AND (e.scheduled_at <= s.stopped_at) IS NOT TRUE
                       THEN s.live
                       ELSE greatest(s.live - 1, 0) END,
           next_at = CASE WHEN s.placed_at > e.started_at THEN s.next_at
                          WHEN e.stop_job THEN NULL
                          WHEN s.follows_end AND s.next_at IS NOT NULL
                               AND e.next_at > coalesce(s.last_fired_at, e.next_at - 1)
                          THEN e.next_at ELSE s.next_at END,
           slot = CASE WHEN s.placed_at > e.started_at THEN s.slot
                       WHEN e.stop_job THEN NULL
                       WHEN s.follows_end AND s.active AND s.next_at IS NOT NULL
                            AND e.next_at > coalesce(s.last_fired_at, e.next_at - 1)
                       THEN e.slot ELSE s.slot END,
           has_condition = (s.has_condition OR e.judge OR NOT e.succeeded)
                     AND s.stopped_at IS DISTINCT FROM {stopped.for_good},
           last_status = e.status, last_start_at = e.started_at, last_end_at = e.finished_at,
           last_good_start_at = CASE WHEN e.succeeded THEN e.started_at
                                     ELSE s.last_good_start_at END,
           last_good_end_at = CASE WHEN e.succeeded THEN e.finished_at
                                   ELSE s.last_good_end_at END,
           failures = CASE WHEN e.succeeded THEN 0 WHEN e.failed THEN s.failures + 1
                           ELSE s.failures END,
           -- half a microsecond is rounded up, whereas round() would round to even
           average_us = CASE WHEN NOT e.succeeded THEN s.average_us
                             WHEN s.average_us IS NULL AND :alpha::float8 > 0 THEN e.took
                             ELSE floor(s.average_us + :alpha::float8 * (e.took - s.average_us) + 0.5)::int8 END,
           variance = CASE WHEN NOT e.succeeded THEN s.variance
                           WHEN s.average_us IS NULL THEN (1 - :alpha::float8) * s.variance
                           ELSE (1 - :alpha::float8) * (s.variance + :alpha * (e.took - s.average_us)::float8
                                                            * (e.took - s.average_us)::float8) END,
           succeeded_at = CASE WHEN e.succeeded THEN e.scheduled_at
                          ELSE s.succeeded_at END,
           failed_at = CASE WHEN e.failed THEN e.scheduled_at
                            ELSE s.failed_at END,
           succeeded_runs = s.succeeded_runs + e.succeeded::int4,
           failed_runs = s.failed_runs + e.failed::int4
      FROM (SELECT *, status IN ({attempts.succeeded}) AS succeeded,
            status IN ({attempts.failed}) AS failed FROM ended) AS e
     WHERE s.job_no = e.job_no
 RETURNING s.shard, s.tenant_no, e.job_no, e.scheduled_at, e.sequence, e.attempt, s.has_condition,
 e.priority,
           CASE WHEN (e.scheduled_at <= s.stopped_at) IS NOT TRUE THEN e.retry_at END AS retry_at,
           -- true if the next run time has changed or the run has failed
           s.stopped_at IS DISTINCT FROM {stopped.for_good}
           AND (s.follows_end AND s.next_at = e.next_at
                OR NOT e.succeeded AND (e.retry_at IS NULL OR e.scheduled_at <= s.stopped_at)) AS must_reload
), waiting AS (
    INSERT INTO delayed_attempt (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no,
                      priority)
    SELECT shard, retry_at, scheduled_at, job_no, sequence, attempt + 1, tenant_no, priority
      FROM updated WHERE retry_at IS NOT NULL
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM updated WHERE has_condition
        {on_conflict_judge_again}
), changed AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM updated WHERE must_reload
        {on_conflict_reload_again}
)
SELECT array_agg(job_no) FROM ended;

-- :name finish_classify (node, job_no, scheduled_at, sequence, attempt, fence)
-- Attempts that the same node has already finished under the same fence.
SELECT r.job_no
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
              :fence::int4[])
       AS d(job_no, scheduled_at, sequence, attempt, fence)
  JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
 WHERE r.node_no = :node AND r.fence = d.fence AND r.status NOT IN ({attempts.unfinished});

-- :name finish_correct_skips (job_no, since, old_reason, new_reason)
-- Corrects the reason of runs that were skipped while results of attempts could not be stored. The
-- skipped runs are found along the links from each run to the previous run, back to `since`. If the
-- first attempt of a run was never claimed, its link is in the queue.
WITH RECURSIVE linked_run AS (
    SELECT d.job_no, d.since, s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
      FROM unnest(:job_no::int8[], :since::int8[]) AS d(job_no, since) JOIN job_state s USING (job_no)
     WHERE s.head_at >= d.since
     UNION ALL
    SELECT c.job_no, c.since, p.prev_at, p.prev_sequence, c.depth + 1
      FROM linked_run c
     CROSS JOIN LATERAL (SELECT prev_at, prev_sequence FROM attempt
                          WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
                            AND attempt = 0
                          UNION
                         SELECT prev_at, prev_sequence FROM ready
                          WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
                            AND attempt = 0) AS p
     WHERE p.prev_at >= c.since AND c.depth < 1000
)
UPDATE attempt r
   SET skip_reason = :new_reason
  FROM linked_run c
 WHERE r.scheduled_at = c.at AND r.job_no = c.job_no AND r.sequence = c.sequence AND r.attempt = 0
   AND r.status = {attempt.skipped} AND r.skip_reason = :old_reason;

-- :name finish_dead (job_no, scheduled_at, sequence, attempt, reason)
-- Stores dead letters of runs that ended in this transaction, except cancelled runs.
INSERT INTO dead_letter (job_no, scheduled_at, sequence, attempt, tenant_no, died_at, reason,
                         status,
                         error)
SELECT r.job_no, r.scheduled_at, r.sequence, r.attempt, r.tenant_no, r.finished_at, d.reason,
       r.status,
       left(r.error, 4096)
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
              :reason::int2[])
       AS d(job_no, scheduled_at, sequence, attempt, reason)
  JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
 WHERE NOT r.cancel_requested
    ON CONFLICT (job_no, scheduled_at, sequence) DO NOTHING;

-- :name finish_failing (job_no, scheduled_at, sequence, attempt, pause_after)
-- Counts a failure of each job; this transaction has locked the jobs' rows in job_state. Each job
-- occurs once in the batch.
INSERT INTO failing AS f (job_no, runs, succeeded_runs, is_due)
SELECT s.job_no, 1, s.succeeded_runs, d.pause_after <= 1
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
              :pause_after::int4[])
       AS d(job_no, scheduled_at, sequence, attempt, pause_after)
  JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
  JOIN job_state s USING (job_no)
 WHERE NOT r.cancel_requested AND s.stopped_at IS DISTINCT FROM {stopped.for_good}
    ON CONFLICT (job_no) DO UPDATE
   SET runs = CASE WHEN f.succeeded_runs = excluded.succeeded_runs THEN f.runs + 1 ELSE 1 END,
       succeeded_runs = excluded.succeeded_runs,
       is_due = CASE WHEN f.succeeded_runs = excluded.succeeded_runs THEN f.runs + 1 ELSE 1 END
                >= (SELECT d.pause_after
                      FROM unnest(:job_no::int8[], :pause_after::int4[]) AS d(job_no, pause_after)
                     WHERE d.job_no = f.job_no);

-- :name finish_delete_checkpoints (job_no, scheduled_at, sequence)
-- Deletes checkpoints in the same way as finish_delete_notes deletes notes.
DELETE FROM checkpoint
 WHERE ctid = ANY (ARRAY(
           SELECT c.ctid
             FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[]) AS d(job_no, scheduled_at, sequence)
            CROSS JOIN LATERAL (
                  SELECT ctid FROM checkpoint c
                   WHERE c.scheduled_at = d.scheduled_at AND c.job_no = d.job_no
                     AND c.sequence = d.sequence
                  OFFSET 0) AS c));

-- :name finish_delete_notes (job_no, scheduled_at, sequence, attempt)
-- The statement joins from the batch to the rows (OFFSET 0 keeps the join order), whatever the
-- planner estimates for a table that is mostly empty. A plan made while the table was empty would
-- read the whole table for each attempt, and would stay when the table has grown.
DELETE FROM note
 WHERE ctid = ANY (ARRAY(
           SELECT n.ctid
             FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[],
                         :attempt::int2[])
                  AS d(job_no, scheduled_at, sequence, attempt)
            CROSS JOIN LATERAL (
                  SELECT ctid FROM note n
                   WHERE n.scheduled_at = d.scheduled_at AND n.job_no = d.job_no
                     AND n.sequence = d.sequence AND n.attempt = d.attempt
                  OFFSET 0) AS n));

-- :name finish_plain (
--   node, alpha, job_no, scheduled_at, sequence, attempt, fence, status, started_at, finished_at
-- )
-- Finishes the common batch: all runs succeed, have no results, and change neither the state nor
-- the next run time of their jobs. Each job occurs once in the batch. The arithmetic is the same as
-- in core's History::after.
WITH ended AS (
    UPDATE attempt r SET status = d.status, finished_at = d.finished_at
      FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
                  :fence::int4[], :status::int2[],
                  :started_at::int8[], :finished_at::int8[])
           AS d(job_no, scheduled_at, sequence, attempt, fence, status, started_at, finished_at)
     WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no AND r.sequence = d.sequence
       AND r.attempt = d.attempt AND r.node_no = :node AND r.fence = d.fence
       AND r.status = {attempt.running}
 RETURNING r.job_no, r.scheduled_at, d.status, d.started_at, d.finished_at,
           greatest(d.finished_at - d.started_at, 0) AS took
), updated AS (
    UPDATE job_state s
       SET live = greatest(s.live - 1, 0),
           last_status = e.status, last_start_at = e.started_at, last_end_at = e.finished_at,
           last_good_start_at = e.started_at, last_good_end_at = e.finished_at, failures = 0,
           -- half a microsecond is rounded up, whereas round() would round to even
           average_us = CASE WHEN s.average_us IS NULL AND :alpha::float8 > 0 THEN e.took
                             ELSE floor(s.average_us + :alpha::float8 * (e.took - s.average_us) + 0.5)::int8 END,
           variance = CASE WHEN s.average_us IS NULL THEN (1 - :alpha::float8) * s.variance
                           ELSE (1 - :alpha::float8) * (s.variance + :alpha * (e.took - s.average_us)::float8
                                                            * (e.took - s.average_us)::float8) END,
           succeeded_at = e.scheduled_at, succeeded_runs = s.succeeded_runs + 1
      FROM ended e
     WHERE s.job_no = e.job_no
 RETURNING s.job_no, s.tenant_no, s.shard, s.has_condition
), touched AS (
    -- usually no rows
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM updated WHERE has_condition
        {on_conflict_judge_again}
)
SELECT array_agg(job_no) FROM ended;

-- :name finish_save_checkpoints (job_no, scheduled_at, sequence, saved_at, data)
INSERT INTO checkpoint (scheduled_at, job_no, sequence, saved_at, data)
SELECT scheduled_at, job_no, sequence, saved_at, data
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :saved_at::int8[],
              :data::bytea[])
       AS d(job_no, scheduled_at, sequence, saved_at, data)
    ON CONFLICT (scheduled_at, job_no, sequence) DO UPDATE
   SET saved_at = excluded.saved_at, data = excluded.data;
