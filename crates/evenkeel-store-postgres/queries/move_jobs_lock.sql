-- Whoever stops it waits until this batch is done, or this sees that it was stopped.
SELECT coalesce($4::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM rebalance
 WHERE id = $1 AND tenant_no = $2 AND state = 1 AND parts_done = $3 AND parts > $3
   FOR NO KEY UPDATE;
