UPDATE dead_letter SET redriven_at = ?4, new_at = ?5, new_sequence = ?6
WHERE job_no = ?1 AND scheduled_at = ?2 AND sequence = ?3
