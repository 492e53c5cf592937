-- What waits for a place, by the first byte of the limit, which is its scope.
SELECT substr(pool, 2, 2), count(*)
FROM (SELECT pool FROM ready WHERE home_pool IS NOT NULL LIMIT ?1)
GROUP BY substr(pool, 2, 2)
