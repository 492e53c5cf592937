UPDATE node SET oldest_open = ?2 WHERE node_no = ?1 AND oldest_open > ?2
