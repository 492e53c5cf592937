UPDATE rebalance_part SET made = ?3 WHERE rebalance_no = ?1 AND part = ?2
