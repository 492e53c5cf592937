SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at,
       r.crashes, j.definition, r.priority, r.node_no
FROM run r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at = ?1 AND r.job_no = ?2 AND r.sequence = ?3 AND r.attempt = ?4 AND r.status = 1
