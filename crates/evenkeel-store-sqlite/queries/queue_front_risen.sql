SELECT scheduled_at, job_no, sequence, attempt FROM ready
WHERE pool = ?1 AND lane = ?2 AND open_from IS NULL
ORDER BY rise, should_start_by, since, job_no LIMIT ?3
