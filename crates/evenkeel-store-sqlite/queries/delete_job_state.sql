UPDATE job_state SET generation = generation + 1, active = 0, next_at = NULL, slot = NULL,
                     watched = 0
WHERE job_no = ?1
