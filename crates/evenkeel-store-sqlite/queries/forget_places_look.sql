SELECT p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt
FROM place p
WHERE (p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt) > (?1, ?2, ?3, ?4, ?5)
ORDER BY p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt LIMIT ?6
