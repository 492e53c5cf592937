SELECT EXISTS (SELECT 1 FROM rebalance WHERE created_at < ?1 AND state <> 1 AND state = 0)
