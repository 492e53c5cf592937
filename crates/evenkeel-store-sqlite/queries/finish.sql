-- Ends of attempts.

-- :name finish_classify
SELECT 1 FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND node_no = ?5 AND fence = ?6 AND status NOT IN (0, 1)

-- :name finish_correct_skips
-- Times of a job that were skipped while the end of a run could not be stored: they are found along
-- the links from each chain to the one before, back to the moment from which on that is so. A first
-- attempt that was never claimed has its link in the queue.
WITH RECURSIVE chain(at, sequence, depth) AS (
    SELECT head_at, head_sequence, 0 FROM job_state WHERE job_no = ?1 AND head_at >= ?2
    UNION ALL
    SELECT p.prev_at, p.prev_sequence, c.depth + 1
      FROM chain c JOIN attempt p ON p.scheduled_at = c.at AND p.job_no = ?1
                             AND p.sequence = c.sequence AND p.attempt = 0
     WHERE p.prev_at >= ?2 AND c.depth < 1000
    UNION ALL
    SELECT q.prev_at, q.prev_sequence, c.depth + 1
      FROM chain c JOIN ready q ON q.scheduled_at = c.at AND q.job_no = ?1
                               AND q.sequence = c.sequence AND q.attempt = 0
     WHERE q.prev_at >= ?2 AND c.depth < 1000
)
UPDATE attempt SET skip_reason = ?4
 WHERE job_no = ?1 AND sequence = 0 AND attempt = 0 AND status = 6 AND skip_reason = ?3
   AND scheduled_at IN (SELECT at FROM chain WHERE sequence = 0)

-- :name finish_dead
INSERT INTO dead_letter (job_no, scheduled_at, sequence, attempt, tenant_no, died_at, reason, status,
                         error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO NOTHING

-- :name finish_failing
-- One more in a row, or the first since a good end.
INSERT INTO failing (job_no, runs, succeeded_runs, is_due)
SELECT job_no, 1, succeeded_runs, ?2 <= 1 FROM job_state
WHERE job_no = ?1 AND stopped_at IS NOT 9223372036854775807
ON CONFLICT DO UPDATE
SET runs = CASE WHEN succeeded_runs = excluded.succeeded_runs THEN runs + 1 ELSE 1 END,
    is_due = CASE WHEN succeeded_runs = excluded.succeeded_runs THEN runs + 1 ELSE 1 END >= ?2,
    succeeded_runs = excluded.succeeded_runs

-- :name finish_follow
-- The end says when the next one is, unless there is none any more.
UPDATE job_state SET next_at = ?2, slot = ?3
WHERE job_no = ?1 AND next_at IS NOT NULL AND (last_fired_at IS NULL OR last_fired_at < ?2)

-- :name finish_delete_checkpoints
DELETE FROM checkpoint WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3

-- :name finish_delete_notes
DELETE FROM note WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4

-- :name finish_history
SELECT last_start_at, last_end_at, last_good_start_at, last_good_end_at, failures, average_us,
       variance, has_condition, follows_end, placed_at
FROM job_state WHERE job_no = ?1

-- :name finish_is_stopped
SELECT 1 FROM job_state WHERE job_no = ?1 AND stopped_at >= ?2

-- :name finish_job
UPDATE job_state
SET live = max(live - ?2, 0), last_status = ?3, last_start_at = ?4, last_end_at = ?5,
    last_good_start_at = ?6, last_good_end_at = ?7, failures = ?8, average_us = ?9, variance = ?10,
    succeeded_at = coalesce(?11, succeeded_at), failed_at = coalesce(?12, failed_at),
    succeeded_runs = succeeded_runs + (?11 IS NOT NULL), failed_runs = failed_runs + (?12 IS NOT NULL)
WHERE job_no = ?1

-- :name finish_run
UPDATE attempt SET status = ?7, finished_at = ?8, error = ?9, output = ?10, items_crawled = ?11,
               items_indexed = ?12, cpu_us = ?13, memory_kb = ?14
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND node_no = ?5 AND fence = ?6 AND status = 1

-- :name finish_save_checkpoints
INSERT INTO checkpoint (scheduled_at, job_no, sequence, saved_at, data)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET saved_at = excluded.saved_at, data = excluded.data

-- :name finish_stop_job
UPDATE job_state SET next_at = NULL, slot = NULL WHERE job_no = ?1
