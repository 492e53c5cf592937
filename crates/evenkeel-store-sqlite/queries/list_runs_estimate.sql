SELECT coalesce(sum(executions), 0) FROM job_state WHERE tenant_no = ?1
