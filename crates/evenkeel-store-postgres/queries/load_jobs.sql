SELECT s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, s.generation, s.live,
       s.head_at, s.head_sequence, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition
  FROM unnest($1::int8[]) AS d(job_no) JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.stopped_at IS DISTINCT FROM 9223372036854775807;
