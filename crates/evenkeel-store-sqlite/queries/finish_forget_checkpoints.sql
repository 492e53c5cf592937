DELETE FROM checkpoint WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3
