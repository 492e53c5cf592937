-- Two stretches of two indexes, side by side; of the wide rows of jobs only the index is read.
SELECT s.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.rhythm, s.cost_us
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.tenant_no = $1 AND j.standing <> 3
   AND j.job_no BETWEEN $2 AND $3 AND s.job_no BETWEEN $2 AND $3
   AND s.active AND s.slot IS NOT NULL
 ORDER BY s.job_no;
