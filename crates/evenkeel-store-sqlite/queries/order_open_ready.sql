UPDATE ready SET open_from = ?2, open_until = ?3, forbidden_nodes = ?4 WHERE job_no = ?1
