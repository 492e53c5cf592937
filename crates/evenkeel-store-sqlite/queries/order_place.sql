UPDATE job_state SET next_at = ?2, slot = ?3, placed_at = ?4 WHERE job_no = ?1
