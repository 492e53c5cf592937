SELECT count(*) FROM (
    SELECT 1 FROM page p
    WHERE p.job_no = ?4 AND p.tenant_no = ?1 AND p.url >= ?2 AND p.url < ?2 || char(1114111)
    LIMIT ?3)
