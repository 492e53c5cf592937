SELECT job_count, warnings, errors,
       (SELECT count(*) FROM (SELECT FROM watch
                               WHERE tenant_no = $1 AND reason = 9 LIMIT 10000) AS h)
  FROM tenant WHERE tenant_no = $1;
