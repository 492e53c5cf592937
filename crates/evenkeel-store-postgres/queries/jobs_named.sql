SELECT id, nullif(configuration, '') FROM job
 WHERE tenant_no = $1 AND name = $2 AND standing <> 3
 ORDER BY configuration
 LIMIT $3;
