UPDATE job SET standing = ?2, updated_at = ?3 WHERE job_no = ?1
