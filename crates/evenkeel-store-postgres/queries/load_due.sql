-- What is due is found first, by its index: asked for the first jobs in order, the planner would
-- rather walk all jobs of the table in that order.
WITH due AS MATERIALIZED (
    SELECT job_no, tenant_no, next_at, generation, live, head_at, head_sequence, last_start_at,
           last_end_at, last_good_start_at, last_good_end_at, failures, average_us, variance,
           placed_at, fired
      FROM job_state
     WHERE shard = $1 AND slot <= $2 AND active AND job_no > $3
)
SELECT s.job_no, s.tenant_no, s.next_at, s.generation, s.live, s.head_at, s.head_sequence,
       s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition
  FROM (SELECT * FROM due ORDER BY job_no LIMIT $4) AS s JOIN job j USING (job_no)
 ORDER BY s.job_no;
