UPDATE run SET status = ?9, fence = fence + 1, crashes = crashes + ?7, finished_at = ?8
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND node_no = ?5 AND fence = ?6 AND status = 1
