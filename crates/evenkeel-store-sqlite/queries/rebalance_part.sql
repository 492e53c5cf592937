SELECT p.moves, p.made FROM rebalance r JOIN rebalance_part p ON p.rebalance_no = r.rebalance_no
WHERE r.id = ?2 AND r.tenant_no = ?1 AND p.part = ?3
