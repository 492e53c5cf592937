-- The first of each lane of a pool, by priority. Counted along the order of the queue, all of whose
-- columns are in its index.
SELECT g.nth, c.priority, c.waiting, c.oldest
  FROM unnest($1::text[], $2::int2[]) WITH ORDINALITY AS g(pool, lane, nth)
 CROSS JOIN LATERAL (
    SELECT w.priority, count(*) AS waiting, min(w.since) AS oldest
      FROM (SELECT priority, since FROM ready
             WHERE pool = g.pool AND lane = g.lane
             ORDER BY priority DESC, should_start_by, since, job_no
             LIMIT $3) AS w
     GROUP BY w.priority) AS c;
