-- Another one of the tenant that goes on and was touched lately.
SELECT id FROM rebalance
WHERE tenant_no = ?1 AND state = 1 AND id <> ?2 AND touched_at > ?3 LIMIT 1
