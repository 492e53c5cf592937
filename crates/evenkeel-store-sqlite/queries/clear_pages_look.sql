SELECT page_no FROM page WHERE job_no = ?1 ORDER BY page_no LIMIT ?2
