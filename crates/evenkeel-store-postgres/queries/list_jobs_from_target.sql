SELECT job_no FROM job WHERE tenant_no = $1::int4 AND target_no = $14::int8 LIMIT 10001
