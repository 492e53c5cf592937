SELECT count(*) FROM (SELECT FROM failure WHERE tenant_no = $1 LIMIT $2) AS f;
