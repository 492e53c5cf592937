SELECT number FROM target WHERE tenant_no = $1 AND number = $2
 UNION ALL
SELECT number FROM target WHERE tenant_no = $1 AND source_id = $3
 LIMIT 1;
