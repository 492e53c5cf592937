-- What goes on and was not touched for so long goes on only in name.
DELETE FROM rebalance WHERE rebalance_no IN
    (SELECT rebalance_no FROM
        (SELECT rebalance_no, created_at FROM rebalance WHERE created_at < ?1 AND state <> 1
         UNION ALL
         SELECT rebalance_no, created_at FROM rebalance
         WHERE created_at < ?1 AND state = 1 AND touched_at < ?1)
     ORDER BY created_at LIMIT ?2)
RETURNING rebalance_no
