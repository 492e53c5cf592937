SELECT job_no FROM job WHERE tenant_no = ?1 AND target_no = ?13 AND target_no IS NOT NULL LIMIT 10001
