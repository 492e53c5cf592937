SELECT 1 FROM dead_letter WHERE job_no = ?1 AND scheduled_at = ?2 AND sequence = ?3
