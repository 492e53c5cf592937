-- Plans that nobody acted on.
DELETE FROM rebalance WHERE rebalance_no IN
    (SELECT rebalance_no FROM rebalance WHERE created_at < ?1 AND state <> 1 AND state = 0
     ORDER BY created_at LIMIT ?2)
