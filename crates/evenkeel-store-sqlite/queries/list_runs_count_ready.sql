SELECT count(*) FROM (SELECT 1 FROM ready WHERE tenant_no = ?1 AND fence = 0 LIMIT ?2)
