SELECT p.moves, p.made
  FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
 WHERE r.id = $1 AND r.tenant_no = $2 AND p.part = $3;
