-- When a queued attempt may be claimed.

-- :name closed
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, s.average_us, j.definition
FROM ready r CROSS JOIN job_state s ON s.job_no = r.job_no CROSS JOIN job j ON j.job_no = r.job_no
WHERE r.open_until <= ?1 AND (r.job_no & 255) IN (SELECT value FROM json_each(?2))
ORDER BY r.open_until LIMIT ?3

-- :name reopen
UPDATE ready SET open_from = ?5, open_until = ?6
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
