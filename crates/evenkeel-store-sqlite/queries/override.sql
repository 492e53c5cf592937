-- Overriding the outcome of a run.

-- :name active_attempts_running (scheduled_at, job_no, sequence, attempt)
SELECT priority, fence, started_at FROM attempt
WHERE {this_attempt} AND status = {attempt.running}

-- :name active_attempts_waiting
SELECT {attempt_key}, CASE WHEN own_priority THEN priority END AS priority
FROM ready WHERE job_no = ?1
UNION ALL
SELECT {attempt_key}, priority FROM delayed_attempt WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2

-- :name override_begin (
--   scheduled_at, job_no, sequence, attempt, tenant_no, fence, crashes, prev_at, prev_sequence)
-- Records a waiting attempt as running; the same transaction then records its outcome. An attempt
-- that was returned to the queue has a row, which keeps the node that last ran it.
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes,
                     node_no, prev_at, prev_sequence, number)
VALUES (:scheduled_at, :job_no, :sequence, :attempt, :tenant_no, {attempt.running}, :fence, :crashes,
        0, :prev_at, :prev_sequence, (SELECT executions FROM job_state WHERE job_no = :job_no))
ON CONFLICT DO UPDATE
SET status = {attempt.running}, fence = excluded.fence, node_no = coalesce(node_no, 0)
RETURNING node_no

-- :name override_job
SELECT id FROM job WHERE job_no = ?1

-- :name override_unowned (scheduled_at, job_no, sequence, attempt)
UPDATE attempt SET node_no = NULL
WHERE {this_attempt} AND node_no = 0

-- :name override_node (scheduled_at, job_no, sequence, attempt, tenant_no, fence)
SELECT node_no FROM attempt
WHERE {this_attempt} AND tenant_no = :tenant_no AND fence = :fence AND status = {attempt.running}

-- :name override_running (scheduled_at, job_no, sequence, attempt, tenant_no, fence)
-- The higher fence keeps the attempt's worker from ending it.
UPDATE attempt SET fence = fence + 1
WHERE {this_attempt} AND tenant_no = :tenant_no AND fence = :fence AND status = {attempt.running}
RETURNING node_no
