SELECT job_no FROM job
WHERE tenant_no = $1::int4 AND target_no IS NOT NULL AND target_no = $14::int8 AND job_no > $16::int8
ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8
