SELECT s.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.rhythm, s.cost_us
  FROM unnest($2::int8[]) WITH ORDINALITY AS d(job_no, nth)
  JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.tenant_no = $1 AND s.active AND s.slot IS NOT NULL
 ORDER BY d.nth;
