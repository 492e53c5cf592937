SELECT s.job_no FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = $1 AND j.tenant_no = $2 AND j.standing = 3
   FOR NO KEY UPDATE OF s;
