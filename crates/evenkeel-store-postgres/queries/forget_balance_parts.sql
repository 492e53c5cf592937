-- Of plans made before $1 that nobody acted on, and of rebalances planned before $2.
DELETE FROM rebalance_part
 WHERE ctid = ANY (ARRAY(
       SELECT p.ctid
         FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
        WHERE r.created_at < $1 AND (r.state = 0 OR (r.created_at < $2 AND (r.state <> 1 OR r.touched_at < $2)))
        LIMIT $3));
