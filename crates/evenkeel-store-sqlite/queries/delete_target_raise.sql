UPDATE job_state SET generation = generation + 1
WHERE job_no IN (SELECT job_no FROM job WHERE tenant_no = ?1 AND target_no = ?2)
