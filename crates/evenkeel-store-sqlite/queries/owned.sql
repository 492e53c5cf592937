-- Attempts that a node runs.

-- :fragment owned_columns
r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at,
       r.crashes, j.definition, r.priority

-- :name find_owned (scheduled_at, job_no, sequence, attempt, node_no)
SELECT {owned_columns}
FROM attempt r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at = :scheduled_at AND r.job_no = :job_no AND r.sequence = :sequence
  AND r.attempt = :attempt AND r.node_no = :node_no AND r.status = {attempt.running}

-- :name owned
SELECT {owned_columns}
FROM attempt r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at >= (SELECT low_watermark FROM node WHERE node_no = ?1)
  AND r.node_no = ?1 AND r.status = {attempt.running}
LIMIT ?2

-- :name owned_long_attempts
-- The long-running attempts below the low watermark; `owned` finds the other attempts.
SELECT {owned_columns}
FROM long_attempt l
JOIN attempt r ON {same_attempt}
JOIN job j ON j.job_no = r.job_no
WHERE l.node_no = ?1 AND r.node_no = ?1 AND r.status = {attempt.running}
  AND l.scheduled_at < (SELECT low_watermark FROM node WHERE node_no = ?1)
LIMIT ?2
