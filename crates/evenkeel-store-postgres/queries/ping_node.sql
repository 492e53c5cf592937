UPDATE node
   SET last_ping_at = now, steal_start_at = NULL,
       oldest_open = CASE WHEN $3::int8 IS NULL THEN oldest_open
                          ELSE least($3, reached_back_to) END,
       reached_back_to = CASE WHEN $3::int8 IS NULL THEN reached_back_to END
  FROM (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now) AS clock
 WHERE node_no = $2 AND state IN (0, 1)
RETURNING now;
