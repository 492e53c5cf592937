SELECT count(*) FROM (
    SELECT 1 FROM page p CROSS JOIN job j ON j.job_no = p.job_no
    WHERE p.tenant_no = ?1 AND j.standing <> 3 AND p.url >= ?2 AND p.url < ?2 || char(1114111)
    LIMIT ?3)
