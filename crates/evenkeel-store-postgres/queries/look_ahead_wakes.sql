SELECT s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, s.generation, s.live,
       s.head_at, s.head_sequence, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition, w.due, w.scheduled_at, w.sequence, w.attempt,
       EXISTS (SELECT FROM checkpoint c
                WHERE c.scheduled_at = w.scheduled_at AND c.job_no = w.job_no
                  AND c.sequence = w.sequence),
       w.priority
  FROM (SELECT * FROM wake WHERE shard = ANY ($1::int2[]) AND due <= $2
         ORDER BY due, scheduled_at, job_no, sequence, attempt LIMIT $3) AS w
  JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 ORDER BY w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt;
