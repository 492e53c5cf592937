SELECT count(*) FROM (SELECT 1 FROM failure WHERE tenant_no = ?1 LIMIT ?2)
