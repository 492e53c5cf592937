SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND (updated_at, job_no) > (?15, ?16)
ORDER BY updated_at ASC, job_no ASC LIMIT ?19 OFFSET ?20
