DELETE FROM watch WHERE job_no = ?1 RETURNING tenant_no, level
