SELECT id FROM job
WHERE tenant_no = ?1 AND name = ?2 AND configuration = ?3 AND standing <> 3 AND job_no <> ?4
