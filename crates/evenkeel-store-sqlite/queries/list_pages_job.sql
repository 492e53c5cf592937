SELECT job_no FROM job WHERE id = ?1 AND tenant_no = ?2 AND standing <> 3
