SELECT tenant_no, level, since FROM watch WHERE job_no = ?1 AND touched = ?2
