UPDATE tenant SET job_count = job_count + ?2 WHERE tenant_no = ?1
