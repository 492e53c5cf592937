-- The first of a lane of a pool, by priority. Counted along the order of the queue, all of whose
-- columns are in its index.
SELECT priority, count(*), min(since)
  FROM (SELECT priority, since FROM ready WHERE pool = ?1 AND lane = ?2
         ORDER BY priority DESC, should_start_by, since, job_no LIMIT ?3)
 GROUP BY priority
