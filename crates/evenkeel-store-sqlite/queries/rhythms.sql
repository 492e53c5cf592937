SELECT tenant_no, key, rhythm, jobs, cost_us FROM rhythm
WHERE (tenant_no, key) > (?1, ?2) ORDER BY tenant_no, key LIMIT ?3
