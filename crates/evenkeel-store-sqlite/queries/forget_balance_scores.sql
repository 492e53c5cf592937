DELETE FROM balance_score WHERE (tenant_no, hour) IN
    (SELECT tenant_no, hour FROM balance_score WHERE hour < ?1 ORDER BY hour LIMIT ?2)
