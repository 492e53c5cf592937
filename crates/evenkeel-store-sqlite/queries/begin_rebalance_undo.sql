UPDATE rebalance SET undone_by = ?3 WHERE id = ?2 AND tenant_no = ?1
