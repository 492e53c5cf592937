-- Returning attempts of lost workers to the queue.

-- :name requeue_count_crash
UPDATE attempt SET crashes = crashes + 1
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4

-- :name requeue_crashes
SELECT crashes FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4

-- :name requeue_run
-- The row goes on saying who had it and since when; the fence alone keeps that node out.
UPDATE attempt SET status = 0, fence = fence + 1, crashes = crashes + ?7
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND node_no = ?5 AND fence = ?6 AND status = 1

-- :name requeue_withdraw_run
UPDATE attempt SET status = ?9, fence = fence + 1, crashes = crashes + ?7, finished_at = ?8
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND node_no = ?5 AND fence = ?6 AND status = 1
