SELECT job_no FROM job WHERE tenant_no = ?1 AND standing <> 3 LIMIT 10001
