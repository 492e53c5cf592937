SELECT 1 FROM job WHERE job_no = ?1 AND standing = 3
