SELECT scheduled_at, job_no, sequence, attempt, priority, since, rise
FROM ready
WHERE (scheduled_at, job_no, sequence, attempt) > (?1, ?2, ?3, ?4)
ORDER BY scheduled_at, job_no, sequence, attempt LIMIT ?5
