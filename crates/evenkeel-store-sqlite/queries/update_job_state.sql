UPDATE job_state SET generation = generation + 1, by_end = ?2 WHERE job_no = ?1
