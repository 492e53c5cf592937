SELECT count(*) FROM (
    SELECT 1 FROM job
    WHERE tenant_no = ?1 AND standing <> 3 AND name >= ?2 AND name < ?2 || char(1114111)
    LIMIT ?4)
