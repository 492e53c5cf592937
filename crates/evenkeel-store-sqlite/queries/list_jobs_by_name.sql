SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND (name, configuration) >= (?17, ?18)
ORDER BY name ASC, configuration ASC LIMIT ?19 OFFSET ?20
