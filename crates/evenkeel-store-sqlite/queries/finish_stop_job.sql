UPDATE job_state SET next_at = NULL, slot = NULL WHERE job_no = ?1
