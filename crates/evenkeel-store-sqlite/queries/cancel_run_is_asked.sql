SELECT superseded FROM cancellation
WHERE node_no = ?1 AND scheduled_at = ?2 AND job_no = ?3 AND sequence = ?4 AND attempt = ?5
