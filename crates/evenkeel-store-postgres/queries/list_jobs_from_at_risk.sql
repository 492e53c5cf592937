SELECT job_no FROM watch WHERE tenant_no = $1::int4 AND level > 0 LIMIT 10001
