-- The next waiting rooms, one step along their index for each; the lowest and the highest limit in
-- them, and how many have places, be it that some have ended.
WITH RECURSIVE rooms AS (
    (SELECT pool, 1 AS nth FROM ready WHERE home_pool IS NOT NULL AND pool > $1
      ORDER BY pool LIMIT 1)
    UNION ALL
    SELECT next.pool, rooms.nth + 1
      FROM rooms
     CROSS JOIN LATERAL (SELECT pool FROM ready
                          WHERE home_pool IS NOT NULL AND pool > rooms.pool
                          ORDER BY pool LIMIT 1) AS next
     WHERE rooms.nth < $2::int8
)
SELECT r.pool,
       (SELECT min(q.parked_max) FROM ready q WHERE q.home_pool IS NOT NULL AND q.pool = r.pool),
       (SELECT max(q.parked_max) FROM ready q WHERE q.home_pool IS NOT NULL AND q.pool = r.pool),
       (SELECT count(*) FROM place p WHERE p.key = decode(substr(r.pool, 2), 'hex'))
  FROM rooms r ORDER BY r.nth;
