UPDATE page SET seen_at = ?3 WHERE id = ?1 AND job_no = ?2
