SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) WHERE tenant_no = ?1
UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM wake LIMIT 10001) WHERE tenant_no = ?1
