-- Finishing attempts.

-- :fragment owned_attempt
-- The attempt runs, and the node owns it under this fence.
{this_attempt} AND node_no = :node_no AND fence = :fence AND status = {attempt.running}

-- :name finish_classify (scheduled_at, job_no, sequence, attempt, node_no, fence)
SELECT 1 FROM attempt
WHERE {this_attempt} AND node_no = :node_no AND fence = :fence
  AND status NOT IN ({attempts.unfinished})

-- :name finish_correct_skips (job_no, since)
-- Corrects the reason of runs that were skipped since the time at which the result of a run could
-- not be stored. The statement follows the links from each run to the previous run, back to
-- `since`. If the first attempt of a run was never claimed, the link is in the queue.
WITH RECURSIVE earlier(at, sequence, depth) AS (
    SELECT head_at, head_sequence, 0 FROM job_state WHERE job_no = :job_no AND head_at >= :since
    UNION ALL
    SELECT p.prev_at, p.prev_sequence, c.depth + 1
      FROM earlier c JOIN attempt p ON p.scheduled_at = c.at AND p.job_no = :job_no
                                   AND p.sequence = c.sequence AND p.attempt = 0
     WHERE p.prev_at >= :since AND c.depth < 1000
    UNION ALL
    SELECT q.prev_at, q.prev_sequence, c.depth + 1
      FROM earlier c JOIN ready q ON q.scheduled_at = c.at AND q.job_no = :job_no
                                 AND q.sequence = c.sequence AND q.attempt = 0
     WHERE q.prev_at >= :since AND c.depth < 1000
)
UPDATE attempt SET skip_reason = {skip.end_not_stored}
 WHERE job_no = :job_no AND sequence = 0 AND attempt = 0 AND status = {attempt.skipped}
   AND skip_reason = {skip.overlap}
   AND scheduled_at IN (SELECT at FROM earlier WHERE sequence = 0)

-- :name finish_dead (
--   job_no, scheduled_at, sequence, attempt, tenant_no, died_at, reason, status, error)
INSERT INTO dead_letter (job_no, scheduled_at, sequence, attempt, tenant_no, died_at, reason, status,
                         error)
VALUES (:job_no, :scheduled_at, :sequence, :attempt, :tenant_no, :died_at, :reason, :status, :error)
ON CONFLICT DO NOTHING

-- :name finish_failing
-- Counts one more failure in a row, or the first failure since a success.
INSERT INTO failing (job_no, runs, succeeded_runs, is_due)
SELECT job_no, 1, succeeded_runs, ?2 <= 1 FROM job_state
WHERE job_no = ?1 AND stopped_at IS NOT {stopped.for_good}
ON CONFLICT DO UPDATE
SET runs = CASE WHEN succeeded_runs = excluded.succeeded_runs THEN runs + 1 ELSE 1 END,
    is_due = CASE WHEN succeeded_runs = excluded.succeeded_runs THEN runs + 1 ELSE 1 END >= ?2,
    succeeded_runs = excluded.succeeded_runs

-- :name finish_follow
-- Sets the next run time, which depends on when the run finished, unless the job has no next run
-- time any more.
UPDATE job_state SET next_at = ?2, slot = ?3
WHERE job_no = ?1 AND next_at IS NOT NULL AND (last_fired_at IS NULL OR last_fired_at < ?2)

-- :name finish_delete_checkpoints
DELETE FROM checkpoint WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3

-- :name finish_delete_notes (scheduled_at, job_no, sequence, attempt)
DELETE FROM note WHERE {this_attempt}

-- :name finish_history
SELECT last_start_at, last_end_at, last_good_start_at, last_good_end_at, failures, average_us,
       variance, has_condition, follows_end, placed_at
FROM job_state WHERE job_no = ?1

-- :name finish_is_stopped
SELECT 1 FROM job_state WHERE job_no = ?1 AND stopped_at >= ?2

-- :name finish_job (
--   job_no, ended_runs, last_status, last_start_at, last_end_at, last_good_start_at,
--   last_good_end_at, failures, average_us, variance, succeeded_at, failed_at)
UPDATE job_state
SET live = max(live - :ended_runs, 0), last_status = :last_status, last_start_at = :last_start_at,
    last_end_at = :last_end_at, last_good_start_at = :last_good_start_at,
    last_good_end_at = :last_good_end_at, failures = :failures, average_us = :average_us,
    variance = :variance,
    succeeded_at = coalesce(:succeeded_at, succeeded_at), failed_at = coalesce(:failed_at, failed_at),
    succeeded_runs = succeeded_runs + (:succeeded_at IS NOT NULL),
    failed_runs = failed_runs + (:failed_at IS NOT NULL)
WHERE job_no = :job_no

-- :name finish_attempt (
--   scheduled_at, job_no, sequence, attempt, node_no, fence, status, finished_at, error, output,
--   items_crawled, items_indexed, cpu_us, memory_kb)
UPDATE attempt
SET status = :status, finished_at = :finished_at, error = :error, output = :output,
    items_crawled = :items_crawled, items_indexed = :items_indexed, cpu_us = :cpu_us,
    memory_kb = :memory_kb
WHERE {owned_attempt}

-- :name finish_save_checkpoints (scheduled_at, job_no, sequence, saved_at, data)
INSERT INTO checkpoint (scheduled_at, job_no, sequence, saved_at, data)
VALUES (:scheduled_at, :job_no, :sequence, :saved_at, :data)
ON CONFLICT DO UPDATE SET saved_at = excluded.saved_at, data = excluded.data

-- :name finish_stop_job
UPDATE job_state SET next_at = NULL, slot = NULL WHERE job_no = ?1

-- :name finish_plain_attempt (scheduled_at, job_no, sequence, attempt, node_no, fence, status, finished_at)
UPDATE attempt SET status = :status, finished_at = :finished_at
WHERE {owned_attempt}

-- :name finish_plain_job (job_no, scheduled_at, status, started_at, finished_at, took, alpha)
-- The arithmetic is the same as in core's History::after. The cast rounds to the nearest
-- microsecond, because a duration is never negative. Changes nothing if the job has a condition,
-- which must then be evaluated again.
UPDATE job_state
SET live = max(live - 1, 0), last_status = :status,
    last_start_at = :started_at, last_end_at = :finished_at,
    last_good_start_at = :started_at, last_good_end_at = :finished_at, failures = 0,
    average_us = CASE WHEN average_us IS NOT NULL
                      THEN CAST(average_us + :alpha * (:took - average_us) + 0.5 AS INTEGER)
                      WHEN :alpha > 0 THEN :took END,
    variance = (1 - :alpha) * (variance + :alpha * (:took - ifnull(average_us, :took))
                                                 * (:took - ifnull(average_us, :took))),
    succeeded_at = :scheduled_at, succeeded_runs = succeeded_runs + 1
WHERE job_no = :job_no AND has_condition = 0
