SELECT rebalance_no FROM rebalance
WHERE id = ?2 AND tenant_no = ?1 AND state = 1 AND parts_done = ?3 AND parts > ?3
