SELECT priority, fence, started_at FROM run
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND status = 1
