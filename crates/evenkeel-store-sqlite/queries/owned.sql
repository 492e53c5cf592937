SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at,
       r.crashes, j.definition, r.priority
FROM run r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at >= (SELECT oldest_open FROM node WHERE node_no = ?1)
  AND r.node_no = ?1 AND r.status = 1
LIMIT ?2
