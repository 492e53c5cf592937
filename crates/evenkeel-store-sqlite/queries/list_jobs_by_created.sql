SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND job_no > ?16
ORDER BY job_no ASC LIMIT ?19 OFFSET ?20
