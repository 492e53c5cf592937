UPDATE job SET target_no = ?2, target_since = ?3 WHERE job_no = ?1
