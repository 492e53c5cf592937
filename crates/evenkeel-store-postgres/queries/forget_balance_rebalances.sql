-- What goes on and was not touched for so long goes on only in name.
WITH gone AS (
    DELETE FROM rebalance
     WHERE id = ANY (ARRAY(SELECT id FROM rebalance WHERE created_at < $1
                              AND (state <> 1 OR touched_at < $1)
                            ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))
 RETURNING id
), parts AS (
    DELETE FROM rebalance_part WHERE rebalance = ANY (ARRAY(SELECT id FROM gone))
)
SELECT count(*) FROM gone;
