-- What waits after a lane of a pool, by lane and priority; whether that is in waiting rooms.
SELECT is_room, lane, priority, count(*), min(since)
  FROM (SELECT substr(pool, 1, 1) = '~' AS is_room, lane, priority, since
          FROM ready
         WHERE (pool, lane) > (?1, ?2)
         ORDER BY pool, lane
         LIMIT ?3)
 GROUP BY is_room, lane, priority
