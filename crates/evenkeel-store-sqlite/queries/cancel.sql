-- Cancelling runs.

-- :name cancel_run_is_asked
SELECT superseded FROM cancellation
WHERE node_no = ?1 AND scheduled_at = ?2 AND job_no = ?3 AND sequence = ?4 AND attempt = ?5

-- :name cancel_run_last
SELECT attempt, status, node_no FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND tenant_no = ?4
ORDER BY attempt DESC LIMIT 1

-- :name cancel_run_ready
DELETE FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND tenant_no = ?4
RETURNING attempt, prev_at, prev_sequence

-- :name cancel_run_delayed
DELETE FROM delayed_attempt WHERE job_no = ?2 AND scheduled_at = ?1 AND sequence = ?3 AND tenant_no = ?4
RETURNING attempt

-- :name cancellations
SELECT scheduled_at, job_no, sequence, attempt, superseded FROM cancellation WHERE node_no = ?1

-- :name cancellations_delete
-- What has ended meanwhile needs no ending.
DELETE FROM cancellation WHERE node_no = ?1 AND NOT EXISTS (
    SELECT 1 FROM attempt r
    WHERE r.scheduled_at = cancellation.scheduled_at AND r.job_no = cancellation.job_no
      AND r.sequence = cancellation.sequence AND r.attempt = cancellation.attempt
      AND r.node_no = ?1 AND r.status = 1)
