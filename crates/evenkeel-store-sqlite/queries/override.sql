-- Overriding the outcome of a run.

-- :name active_attempts_running
SELECT priority, fence, started_at FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND status = 1

-- :name active_attempts_waiting
SELECT scheduled_at, job_no, sequence, attempt,
       CASE WHEN own_priority THEN priority END AS priority
FROM ready WHERE job_no = ?1
UNION ALL
SELECT scheduled_at, job_no, sequence, attempt, priority FROM delayed_attempt WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2

-- :name override_begin
-- What waited runs for the moment until its end is recorded; nobody sees that. One that was handed
-- back has a row, which goes on saying who had it.
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes, node_no,
                 prev_at, prev_sequence, number)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, 0, ?8, ?9,
        (SELECT executions FROM job_state WHERE job_no = ?2))
ON CONFLICT DO UPDATE SET status = 1, fence = excluded.fence, node_no = coalesce(node_no, 0)
RETURNING node_no

-- :name override_job
SELECT id FROM job WHERE job_no = ?1

-- :name override_unowned
UPDATE attempt SET node_no = NULL
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND node_no = 0

-- :name override_node
SELECT node_no FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND tenant_no = ?5
  AND fence = ?6 AND status = 1

-- :name override_ready
DELETE FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND tenant_no = ?4
RETURNING attempt, prev_at, prev_sequence, fence, crashes

-- :name override_running
-- From here on its worker has no say in it.
UPDATE attempt SET fence = fence + 1
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND tenant_no = ?5
  AND fence = ?6 AND status = 1
RETURNING node_no
