-- The rows are found once and deleted by their place, whatever the planner thinks of a table that
-- is empty most of the time.
WITH told AS (
    DELETE FROM changed_job
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM changed_job WHERE shard = ANY ($1::int2[])
                              LIMIT $2 FOR UPDATE SKIP LOCKED))
 RETURNING job_no
)
SELECT s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, s.generation, s.live,
       s.head_at, s.head_sequence, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition
  FROM told JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.stopped_at IS DISTINCT FROM 9223372036854775807;
