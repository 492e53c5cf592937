SELECT node_no FROM run
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND tenant_no = ?5
  AND fence = ?6 AND status = 1
