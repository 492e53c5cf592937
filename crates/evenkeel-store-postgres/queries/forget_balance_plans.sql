DELETE FROM rebalance
 WHERE id = ANY (ARRAY(SELECT id FROM rebalance r WHERE created_at < $1 AND state = 0
                          AND NOT EXISTS (SELECT 1 FROM rebalance_part WHERE rebalance = r.id)
                        ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED));
