UPDATE rebalance
   SET state = $3,
       ended_at = coalesce($4::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE id = $1 AND tenant_no = $2 AND state = 1;
