SELECT job_no FROM (
    SELECT job_no FROM job WHERE tenant_no = ?1 AND standing = 2
    UNION ALL
    SELECT job_no FROM job_state WHERE tenant_no = ?1 AND slot IS NULL AND active = 1)
LIMIT 10001
