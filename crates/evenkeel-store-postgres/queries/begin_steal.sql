UPDATE node
   SET steal_start_at = coalesce(steal_start_at, now)
  FROM (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now) AS clock
 WHERE node_no = $2 AND state IN (0, 1)
   AND (steal_start_at IS NOT NULL OR now - last_ping_at >= $3);
