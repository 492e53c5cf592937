UPDATE node SET steal_start_at = ?2
WHERE node_no = ?1 AND state IN (0, 1) AND steal_start_at IS NULL AND last_ping_at <= ?3
