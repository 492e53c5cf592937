-- The next waiting room, and the lowest and the highest limit in it.
SELECT r.pool,
       (SELECT min(parked_max) FROM ready WHERE home_pool IS NOT NULL AND pool = r.pool),
       (SELECT max(parked_max) FROM ready WHERE home_pool IS NOT NULL AND pool = r.pool)
FROM (SELECT pool FROM ready WHERE home_pool IS NOT NULL AND pool > ?1 ORDER BY pool LIMIT 1) r
