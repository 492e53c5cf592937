SELECT 1 FROM job_state WHERE job_no = ?1 AND stopped_at >= ?2
