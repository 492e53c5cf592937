UPDATE rebalance SET state = ?3, ended_at = ?4 WHERE id = ?2 AND tenant_no = ?1 AND state = 1
