SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND (name, configuration) >= (?16, ?17)
ORDER BY name ASC, configuration ASC LIMIT ?18 OFFSET ?19
