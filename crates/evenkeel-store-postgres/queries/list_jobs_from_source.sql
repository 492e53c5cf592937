SELECT job_no FROM job WHERE tenant_no = $1::int4 AND standing <> 3 AND source_id = $3 LIMIT 10001
