-- How many of the jobs of `c` are in which state. Due ones with blackouts (7) come with what decides it.
SELECT {status} AS status, count(*), CASE WHEN {held} THEN j.definition END,
       CASE WHEN {held} THEN s.average_us END, {now}, CASE WHEN {held} THEN s.next_at END
  FROM c
 CROSS JOIN LATERAL (SELECT * FROM job WHERE job.job_no = c.job_no LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT * FROM job_state WHERE job_state.job_no = c.job_no LIMIT 1) AS s
 WHERE j.tenant_no = $1::int4 AND j.standing <> 3
 GROUP BY 1, 3, 4, 5, 6
