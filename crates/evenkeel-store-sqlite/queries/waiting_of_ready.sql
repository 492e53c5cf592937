SELECT scheduled_at, job_no, sequence, attempt, pool, lane, priority, should_start_by, ready_at,
       open_from, open_until
FROM ready WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2
