DELETE FROM failing WHERE job_no = ?1
