DELETE FROM wake
WHERE shard = ?1 AND due = ?2 AND scheduled_at = ?3 AND job_no = ?4 AND sequence = ?5
  AND attempt = ?6
RETURNING priority
