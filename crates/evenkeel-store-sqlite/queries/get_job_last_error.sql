SELECT substr(error, 1, ?3) FROM run
WHERE scheduled_at = ?1 AND job_no = ?2 AND status IN (3, 5)
ORDER BY sequence DESC, attempt DESC LIMIT 1
