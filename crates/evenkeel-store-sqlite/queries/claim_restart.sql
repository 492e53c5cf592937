-- An attempt that was handed back has its row already.
UPDATE run SET status = 1, crashes = ?5, fence = ?6, node_no = ?7, started_at = ?8, priority = ?9,
               number = (SELECT executions FROM job_state WHERE job_no = ?2)
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND status = 0
