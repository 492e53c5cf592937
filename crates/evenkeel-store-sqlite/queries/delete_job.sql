UPDATE job SET standing = 3, updated_at = ?2 WHERE job_no = ?1
