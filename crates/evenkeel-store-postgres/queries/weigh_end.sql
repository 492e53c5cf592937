-- As in rhythms_count_ended, but these jobs are locked by nobody yet: what somebody else has locked is
-- left to the next walk.
WITH ended AS MATERIALIZED (
    SELECT job_no, tenant_no, rhythm, cost_us FROM job_state
     WHERE job_no = ANY ($1::int8[]) AND counted AND slot IS NULL
     ORDER BY job_no FOR NO KEY UPDATE SKIP LOCKED
), told AS (
    UPDATE job_state s SET counted = false FROM ended e WHERE s.job_no = e.job_no
), uncounted AS (
    INSERT INTO rhythm AS r (tenant_no, key, rhythm, jobs, cost_us)
    SELECT tenant_no, rhythm, '', -count(*), -sum(cost_us)
      FROM ended GROUP BY tenant_no, rhythm ORDER BY tenant_no, rhythm
        ON CONFLICT (tenant_no, key) DO UPDATE
       SET jobs = r.jobs + excluded.jobs, cost_us = r.cost_us + excluded.cost_us
)
SELECT count(*) FROM ended;
