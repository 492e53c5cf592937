-- The next lane of a pool in which something waits.
SELECT pool, lane FROM ready WHERE (pool, lane) > (?1, ?2) ORDER BY pool, lane LIMIT 1
