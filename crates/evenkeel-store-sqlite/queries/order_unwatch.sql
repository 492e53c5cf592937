UPDATE job_state SET watched = 0 WHERE job_no = ?1
