UPDATE run SET status = ?7, finished_at = ?8, error = ?9, output = ?10, items_crawled = ?11,
               items_indexed = ?12, cpu_us = ?13, memory_kb = ?14
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND node_no = ?5 AND fence = ?6 AND status = 1
