SELECT scheduled_at, job_no, sequence, attempt, priority, since, rise
FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
