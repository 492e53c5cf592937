UPDATE job SET name = ?2, configuration = ?3, source_id = ?4, about = ?5, definition = ?6
WHERE job_no = ?1
