SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.standing, s.generation, j.created_at,
       j.updated_at, s.next_at, s.last_fired_at, s.live,
       (SELECT count(*) FROM ready q WHERE q.job_no = j.job_no)
     + (SELECT count(*) FROM wake w WHERE w.job_no = j.job_no) AS waiting,
       s.executions, s.last_status, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = $1 AND j.tenant_no = $2 AND j.standing <> 3;
