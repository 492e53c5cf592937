SELECT job_no FROM changed_job WHERE shard = ?1 ORDER BY job_no LIMIT ?2
