UPDATE rebalance SET state = 1, touched_at = ?3, ended_at = NULL WHERE id = ?2 AND tenant_no = ?1
