SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) AS r WHERE tenant_no = $1::int4
 UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM wake LIMIT 10001) AS w WHERE tenant_no = $1::int4
