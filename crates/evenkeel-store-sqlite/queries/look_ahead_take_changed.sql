DELETE FROM changed_job WHERE shard = ?1 AND job_no = ?2
