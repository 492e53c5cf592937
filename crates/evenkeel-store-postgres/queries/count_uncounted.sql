-- What somebody else changes just now is counted by them, or is found the next time. From the jobs to
-- their definitions, whatever the planner thinks of how many there are: OFFSET 0 keeps the order of
-- the joins.
SELECT s.job_no, s.tenant_no, s.next_at, s.average_us, j.definition
  FROM (SELECT job_no, tenant_no, next_at, average_us FROM job_state
         WHERE rhythm IS NULL AND slot IS NOT NULL
         ORDER BY job_no LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED) AS s
 CROSS JOIN LATERAL (SELECT definition FROM job WHERE job_no = s.job_no OFFSET 0) AS j;
