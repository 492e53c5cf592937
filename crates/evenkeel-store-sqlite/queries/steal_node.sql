UPDATE node SET state = 2
WHERE node_no = ?1 AND state IN (0, 1) AND steal_start_at = ?2 AND steal_start_at <= ?3
