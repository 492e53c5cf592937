UPDATE run SET node_no = NULL
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND node_no = 0
