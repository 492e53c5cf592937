UPDATE tenant SET job_count = job_count + ?2, next_job = next_job + ?2 WHERE tenant_no = ?1
