SELECT p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt,
       NOT EXISTS (SELECT 1 FROM run r
                   WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                     AND r.sequence = p.sequence AND r.attempt = p.attempt
                     AND r.status IN (0, 1)) AS has_ended
FROM place p
WHERE (p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt) > (?1, ?2, ?3, ?4, ?5)
ORDER BY p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt LIMIT ?6
