SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND source_id IS NOT NULL AND source_id = ?3 AND job_no > ?14
ORDER BY job_no ASC LIMIT ?17 OFFSET ?18
