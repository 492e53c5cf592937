SELECT job_count, warnings, errors,
       (SELECT count(*) FROM (SELECT 1 FROM watch WHERE tenant_no = ?1 AND reason = 9 LIMIT 10000))
FROM tenant WHERE tenant_no = ?1
