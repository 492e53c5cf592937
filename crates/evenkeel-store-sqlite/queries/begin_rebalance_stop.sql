UPDATE rebalance SET state = 3, ended_at = ?3 WHERE tenant_no = ?1 AND state = 1 AND id <> ?2
