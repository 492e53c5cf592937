UPDATE job_state SET executions = executions + 1 WHERE job_no = ?1
