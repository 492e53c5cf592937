-- The lanes of pools in which something waits: one step along the order of the queue for each,
-- however much waits in it. All waiting rooms of limits are one step.
WITH RECURSIVE found AS (
    (SELECT pool, lane, 1 AS nth FROM ready ORDER BY pool, lane LIMIT 1)
    UNION ALL
    SELECT next.pool, next.lane, found.nth + 1
      FROM found
     CROSS JOIN LATERAL (SELECT pool, lane FROM ready
                          WHERE (pool, lane) > (CASE WHEN starts_with(found.pool, '~') THEN '~g'
                                                     ELSE found.pool END, found.lane)
                          ORDER BY pool, lane LIMIT 1) AS next
     WHERE found.nth <= $1::int8
)
SELECT pool, lane FROM found WHERE NOT starts_with(pool, '~')
 ORDER BY nth LIMIT $1;
