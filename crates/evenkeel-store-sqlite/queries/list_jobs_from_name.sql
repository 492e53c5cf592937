-- No text is above its prefix followed by the last character there is.
SELECT job_no FROM job
WHERE tenant_no = ?1 AND standing <> 3 AND name >= ?2 AND name < ?2 || char(1114111) LIMIT 10001
