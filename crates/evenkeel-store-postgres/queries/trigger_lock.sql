-- A deletion that was waited for shows in job_state, the row that is locked, and not in job.
SELECT j.job_no, j.standing, j.definition, s.live,
       coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = $2 AND j.tenant_no = $3 AND j.standing <> 3 AND NOT s.deleted
   FOR NO KEY UPDATE OF s;
