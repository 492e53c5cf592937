SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing = 1 AND job_no > ?15
ORDER BY job_no ASC LIMIT ?18 OFFSET ?19
