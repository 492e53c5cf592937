SELECT job_no FROM job WHERE tenant_no = ?1 AND standing = 1 LIMIT 10001
