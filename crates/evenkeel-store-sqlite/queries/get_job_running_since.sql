SELECT status, started_at, prev_at, prev_sequence FROM run
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3
ORDER BY attempt DESC LIMIT 1
