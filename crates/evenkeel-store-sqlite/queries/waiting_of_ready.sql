SELECT scheduled_at, job_no, sequence, attempt, pool, lane, priority, rise, should_start_by, since,
       open_from, open_until, own_priority, parked_max
FROM ready WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2
