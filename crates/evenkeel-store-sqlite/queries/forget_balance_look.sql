SELECT EXISTS (SELECT 1 FROM balance_score WHERE hour < ?1)
    OR EXISTS (SELECT 1 FROM rebalance WHERE created_at < ?2 AND state <> 1)
    OR EXISTS (SELECT 1 FROM rebalance WHERE created_at < ?2 AND state = 1 AND touched_at < ?2)
