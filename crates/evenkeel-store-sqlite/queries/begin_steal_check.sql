SELECT 1 FROM node WHERE node_no = ?1 AND state IN (0, 1) AND steal_start_at IS NOT NULL
