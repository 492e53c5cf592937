-- Of the wide rows of jobs only an index is read.
SELECT s.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.rhythm, s.cost_us
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.tenant_no = $1 AND j.standing <> 3 AND j.job_no > $2 AND s.job_no > $2
   AND s.active AND s.slot IS NOT NULL
 ORDER BY j.job_no LIMIT $3;
