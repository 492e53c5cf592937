SELECT scheduled_at, job_no, sequence, attempt, due, priority FROM wake WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2
