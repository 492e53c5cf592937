SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND (name, configuration) >= (?15, ?16)
ORDER BY name ASC, configuration ASC LIMIT ?17 OFFSET ?18
