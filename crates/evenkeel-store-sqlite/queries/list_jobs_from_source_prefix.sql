SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND source_id IS NOT NULL
  AND source_id >= ?4 AND source_id < ?4 || char(1114111) LIMIT 10001
