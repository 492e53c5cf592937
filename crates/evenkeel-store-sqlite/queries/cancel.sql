-- Cancelling runs.

-- :name cancel_run_is_asked (node_no, scheduled_at, job_no, sequence, attempt)
SELECT superseded FROM cancellation
WHERE node_no = :node_no AND {this_attempt}

-- :name cancel_run_last (scheduled_at, job_no, sequence, tenant_no)
SELECT attempt, status, node_no FROM attempt
WHERE {this_run} AND tenant_no = :tenant_no
ORDER BY attempt DESC LIMIT 1

-- :name cancel_run_ready (scheduled_at, job_no, sequence, tenant_no)
DELETE FROM ready WHERE {this_run} AND tenant_no = :tenant_no
RETURNING attempt, prev_at, prev_sequence, fence, crashes

-- :name cancel_run_delayed (scheduled_at, job_no, sequence, tenant_no)
DELETE FROM delayed_attempt
WHERE job_no = :job_no AND scheduled_at = :scheduled_at AND sequence = :sequence
  AND tenant_no = :tenant_no
RETURNING attempt

-- :name cancellations
SELECT {attempt_key}, superseded FROM cancellation WHERE node_no = ?1

-- :name cancellations_delete
-- Deletes the cancellations of attempts that have finished.
DELETE FROM cancellation WHERE node_no = ?1 AND NOT EXISTS (
    SELECT 1 FROM attempt r
    WHERE r.scheduled_at = cancellation.scheduled_at AND r.job_no = cancellation.job_no
      AND r.sequence = cancellation.sequence AND r.attempt = cancellation.attempt
      AND r.node_no = ?1 AND r.status = {attempt.running})
