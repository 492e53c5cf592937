UPDATE job_state SET by_end = ?2 WHERE job_no = ?1
