UPDATE ready SET open_from = ?5, open_until = ?6
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
