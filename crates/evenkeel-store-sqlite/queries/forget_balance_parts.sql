DELETE FROM rebalance_part WHERE rebalance_no = ?1
