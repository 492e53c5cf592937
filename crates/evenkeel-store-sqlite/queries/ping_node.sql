UPDATE node SET last_ping_at = ?2, steal_start_at = NULL, oldest_open = coalesce(?3, oldest_open)
WHERE node_no = ?1
