DELETE FROM watch WHERE job_no = ?1
