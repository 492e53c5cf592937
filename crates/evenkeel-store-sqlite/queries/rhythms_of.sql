SELECT tenant_no, rhythm, cost_us FROM job_state WHERE job_no = ?1
