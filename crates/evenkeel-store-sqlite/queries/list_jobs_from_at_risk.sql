SELECT job_no FROM watch WHERE tenant_no = ?1 AND level > 0 LIMIT 10001
