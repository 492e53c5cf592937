SELECT name, configuration FROM job WHERE tenant_no = ?1 AND job_no = ?2 AND name IS NOT NULL
