SELECT page_no, content_hash, bytes FROM page WHERE id = ?1 AND job_no = ?2
