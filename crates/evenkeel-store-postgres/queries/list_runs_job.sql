-- A job of the tenant, deleted or not, and how many attempts it has had.
SELECT j.job_no, s.executions FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = $1 AND j.tenant_no = $2;
