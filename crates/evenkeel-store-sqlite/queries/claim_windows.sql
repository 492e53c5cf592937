-- Claim windows: when a queued attempt may be claimed.

-- :name find_closed_windows
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, s.average_us, j.definition
FROM ready r CROSS JOIN job_state s ON s.job_no = r.job_no CROSS JOIN job j ON j.job_no = r.job_no
WHERE r.open_until <= ?1 AND (r.job_no & 255) IN (SELECT value FROM json_each(?2))
ORDER BY r.open_until LIMIT ?3

-- :name set_claim_windows (scheduled_at, job_no, sequence, attempt, open_from, open_until)
UPDATE ready SET open_from = :open_from, open_until = :open_until
WHERE {this_attempt}
