UPDATE job_state SET generation = generation + 1 WHERE job_no = ?1
