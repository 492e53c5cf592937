-- What waits after a lane of a pool, by lane and priority; whether that is in waiting rooms.
SELECT r.is_room, r.lane, r.priority, count(*), min(r.since)
  FROM (SELECT starts_with(pool, '~') AS is_room, lane, priority, since
          FROM ready
         WHERE (pool, lane) > ($1::text, $2::int2)
         ORDER BY pool, lane
         LIMIT $3) AS r
 GROUP BY r.is_room, r.lane, r.priority;
