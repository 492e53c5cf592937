-- What comes after a key, and whether its job was deleted.
SELECT d.tenant_no, d.key,
       NOT EXISTS (SELECT 1 FROM job j WHERE j.job_no = d.job_no AND j.standing <> 3) AS is_gone
FROM dedup d
WHERE (d.tenant_no, d.key) > (?1, ?2)
ORDER BY d.tenant_no, d.key LIMIT ?3
