SELECT job_no FROM job WHERE id = ?2 AND tenant_no = ?1 AND standing <> 3
