UPDATE job_state SET watched = 1 WHERE job_no = ?1 AND watched = 0
