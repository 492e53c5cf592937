SELECT job_no
  FROM (SELECT job_no FROM job WHERE tenant_no = $1::int4 AND standing = 2
         UNION ALL
        SELECT job_no FROM job_state WHERE tenant_no = $1::int4 AND slot IS NULL AND active) AS e
 LIMIT 10001
