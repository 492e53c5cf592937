DELETE FROM dedup WHERE tenant_no = ?1 AND key = ?2 AND job_no = ?3
