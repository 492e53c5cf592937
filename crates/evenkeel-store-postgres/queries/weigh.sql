-- Most jobs count for what they should. Those that do not are looked at again as they are locked;
-- what somebody else has locked is left to the next walk.
WITH looked_at AS MATERIALIZED (
    SELECT job_no, cost_us, average_us, counted AND NOT cost_stated AS follows
      FROM job_state WHERE job_no > $1 ORDER BY job_no LIMIT $2
), changing AS MATERIALIZED (
    SELECT s.job_no, s.tenant_no, s.rhythm, s.cost_us, s.average_us
      FROM (SELECT job_no FROM looked_at
             WHERE follows AND (cost_us * 5 < average_us * 4 OR cost_us * 4 > average_us * 5)) AS l
      JOIN job_state s USING (job_no)
     WHERE s.counted AND NOT s.cost_stated
       AND (s.cost_us * 5 < s.average_us * 4 OR s.cost_us * 4 > s.average_us * 5)
       FOR NO KEY UPDATE OF s SKIP LOCKED
), changed AS (
    UPDATE job_state s SET cost_us = c.average_us FROM changing c WHERE s.job_no = c.job_no
 RETURNING c.tenant_no, c.rhythm, c.average_us - c.cost_us AS more
)
SELECT (SELECT max(job_no) FROM looked_at), (SELECT count(*) FROM looked_at),
       array_agg(tenant_no), array_agg(rhythm), array_agg(more)
  FROM changed;
