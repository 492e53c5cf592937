SELECT f.job_no, j.id, j.tenant_no, f.runs, s.generation, j.definition
  FROM failing f JOIN job j USING (job_no) JOIN job_state s USING (job_no)
 WHERE f.is_due AND f.good_runs = s.good_runs ORDER BY f.job_no LIMIT $1;
