SELECT tenant_no, key, rhythm, jobs, cost_us FROM rhythm
WHERE tenant_no = ?1 AND key > ?2 ORDER BY key LIMIT ?3
