-- Those that do not are looked at again as they are locked; what somebody else has locked is left to
-- the next walk. From the batch to the rows, whatever the planner thinks of either.
WITH changing AS MATERIALIZED (
    SELECT s.*
      FROM unnest($1::int8[]) AS d(job_no)
     CROSS JOIN LATERAL (SELECT job_no, tenant_no, rhythm, cost_us,
                                least(average_us, 2592000000000) AS takes_us
                           FROM job_state
                          WHERE job_no = d.job_no AND counted AND NOT cost_stated
                            AND average_us IS NOT NULL
                            FOR NO KEY UPDATE SKIP LOCKED) AS s
), changed AS (
    UPDATE job_state s SET cost_us = c.takes_us FROM changing c WHERE s.job_no = c.job_no
)
SELECT array_agg(tenant_no), array_agg(rhythm), array_agg(takes_us - cost_us) FROM changing;
