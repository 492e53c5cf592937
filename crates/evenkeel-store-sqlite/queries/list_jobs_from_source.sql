SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND source_id = ?3 AND source_id IS NOT NULL LIMIT 10001
