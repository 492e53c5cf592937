-- Attempts that a node runs.

-- :name find_owned
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at,
       r.crashes, j.definition, r.priority
FROM attempt r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at = ?1 AND r.job_no = ?2 AND r.sequence = ?3 AND r.attempt = ?4
  AND r.node_no = ?5 AND r.status = 1

-- :name owned
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at,
       r.crashes, j.definition, r.priority
FROM attempt r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at >= (SELECT low_watermark FROM node WHERE node_no = ?1)
  AND r.node_no = ?1 AND r.status = 1
LIMIT ?2

-- :name owned_long_runs
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at,
       r.crashes, j.definition, r.priority
FROM long_attempt l
JOIN attempt r ON r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
          AND r.sequence = l.sequence AND r.attempt = l.attempt
JOIN job j ON j.job_no = r.job_no
WHERE l.node_no = ?1 AND r.node_no = ?1 AND r.status = 1
  -- Younger ones are found from the bound on.
  AND l.scheduled_at < (SELECT low_watermark FROM node WHERE node_no = ?1)
LIMIT ?2
