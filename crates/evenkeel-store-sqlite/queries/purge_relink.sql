UPDATE run SET prev_at = ?4, prev_sequence = ?5
WHERE scheduled_at = ?2 AND job_no = ?1 AND sequence = ?3 AND attempt = 0
