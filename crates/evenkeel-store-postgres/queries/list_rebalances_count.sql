SELECT count(*) FROM rebalance WHERE tenant_no = $1 AND state <> 0;
